package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// DialWebSocket connects to a STOMP server whose URL begins with ws or wss, and returns the connection as a net.Conn as
// Upgrade does; frames must be written with one LF behind their NUL. Server certificates are checked as config says, nil
// for the system's authorities. ctx bounds the handshake only. The caller closes the connection.
func DialWebSocket(ctx context.Context, url string, config *tls.Config) (net.Conn, error) {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	var raw net.Conn // The last one, should the server redirect.
	dialer := &net.Dialer{}
	keep := func(conn net.Conn, err error) (net.Conn, error) {
		raw = conn
		return conn, err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return keep(dialer.DialContext(ctx, network, address))
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return keep((&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address))
		},
	}
	ws, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // it is the connection, or closed
		HTTPClient:      &http.Client{Transport: transport},
		Subprotocols:    subprotocols,
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		transport.CloseIdleConnections()
		if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
			return nil, errors.New("the server refuses the WebSocket: " + response.Status)
		}
		return nil, err
	}
	ws.SetReadLimit(-1) // What a frame may have is for the caller to bound.
	return newWebSocket(ws, raw), nil
}
