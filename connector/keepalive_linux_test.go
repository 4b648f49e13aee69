package connector_test

import (
	"crypto/tls"
	"net"
	"syscall"
	"testing"

	"github.com/natstomp/natstomp/connector/listen"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// shownSockets is a listener that shows what it has accepted.
type shownSockets struct {
	net.Listener
	accepted chan *net.TCPConn
}

func (l shownSockets) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- nc.(*net.TCPConn)
	}
	return nc, err
}

// TestKeepAliveBelowEverything: keep-alive is set on the socket, whatever it is wrapped in (DESIGN section 3, FR-154).
func TestKeepAliveBelowEverything(t *testing.T) {
	s := rig.Start(t, nil)
	pair, err := tls.LoadX509KeyPair(rig.Authority().Server(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *net.TCPConn, 1)
	wrapped := tls.NewListener(listen.Stall(shownSockets{l, accepted}, rig.Patience), &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	go func() { _ = s.Serve(wrapped) }() // It ends with the server.
	nc, err := tls.Dial("tcp", l.Addr().String(), rig.Authority().Trust())
	if err != nil {
		t.Fatal(err)
	}
	c := rig.NewClient(t, stompclient.NewConn(nc))
	c.Login()
	raw, err := (<-accepted).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[int]int{syscall.TCP_KEEPIDLE: 15, syscall.TCP_KEEPINTVL: 15, 6: 3} { // 6 is TCP_KEEPCNT.
		got := -1
		if err := raw.Control(func(fd uintptr) {
			got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
		}); err != nil || got != want {
			t.Errorf("option %d: got %d, %v, want %d", option, got, err, want)
		}
	}
}
