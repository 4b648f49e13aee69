package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/natstomp/natstomp/connector"
)

const kubeMQPrefix = "CONNECTORS_STOMP_"

// alias says what a variable of KubeMQ's STOMP connector means here.
type alias struct {
	path    string                                     // The key that it sets; empty if it has no counterpart.
	convert func(l *loader, text string) (any, error)  // Errors are to be read after the text.
	without func(l *loader) (reason string, none bool) // May say that there is nothing to set.
	reason  string                                     // Why there is no counterpart.
}

// aliases are the eleven variables of KubeMQ's STOMP connector, without their prefix.
func aliases() map[string]alias {
	return map[string]alias{
		"ENABLE":                    {reason: "natstomp serves STOMP as long as it runs"},
		"PORT":                      {path: "listeners.tcp.address", convert: portOf("listeners.tcp.address")},
		"TLS_PORT":                  {path: "listeners.tls.address", convert: portOf("listeners.tls.address"), without: withoutTLS},
		"DEFAULT_PATTERN":           {path: "destinations.default_pattern", convert: asText},
		"SUB_BUFF_SIZE":             {reason: "what waits for a client is bounded in octets, by limits.pending_bytes"},
		"MAX_CONNECTIONS":           {path: "limits.connections", convert: asNumber},
		"MAX_BODY_SIZE":             {path: "limits.body", convert: asSize},
		"HEARTBEAT_MS":              {path: "limits.heartbeat", convert: times(time.Millisecond)},
		"QUEUE_ACK_TIMEOUT_SECONDS": {path: "queues.ack_timeout", convert: times(time.Second)},
		"RPC_TIMEOUT_SECONDS":       {path: "rpc.timeout", convert: times(time.Second)},
		"RPC_MAX_PENDING":           {path: "limits.rpc_pending", convert: asNumber},
	}
}

// loadKubeMQ merges the variables of KubeMQ's STOMP connector, each with a warning.
func (l *loader) loadKubeMQ() error {
	known := aliases()
	return l.loadVariables(kubeMQPrefix, func(name, text string) (string, any) {
		if text == "" {
			return "", nil // A template that was not filled in.
		}
		a, ok := known[name[len(kubeMQPrefix):]]
		if !ok {
			l.warn("%s is not known and has no effect", name)
			return "", nil
		}
		if a.without != nil {
			if reason, none := a.without(l); none {
				a = alias{reason: reason}
			}
		}
		if a.path == "" {
			l.warn("%s has no effect: %s", name, a.reason)
			return "", nil
		}
		value, err := a.convert(l, text)
		if err != nil {
			l.fault(source{rank: fromEnv, name: name}, a.path, quoted(text, false), err.Error(), "")
			return "", nil
		}
		l.warn("%s is a variable of KubeMQ and is taken as %s: %v; better set %s",
			name, a.path, value, key{path: a.path}.env())
		return a.path, value
	})
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

func asText(_ *loader, text string) (any, error) { return text, nil }

func asNumber(_ *loader, text string) (any, error) { return parseInt(text) }

func asSize(_ *loader, text string) (any, error) {
	n, err := parseInt(text)
	return connector.Size(n), err
}

func times(unit time.Duration) func(*loader, string) (any, error) {
	return func(_ *loader, text string) (any, error) {
		n, err := parseInt(text)
		if err != nil {
			return nil, err
		}
		if d := time.Duration(n) * unit; d/unit == time.Duration(n) {
			return d, nil
		}
		return nil, errors.New("is a longer time than fits")
	}
}

// portOf puts a port in the place of that of the address so far: KubeMQ always listens on all addresses, natstomp does
// so only when it is told to.
func portOf(path string) func(*loader, string) (any, error) {
	return func(l *loader, text string) (any, error) {
		if port, err := strconv.ParseUint(text, 10, 16); err != nil || port == 0 {
			return nil, errors.New("is no port from 1 to 65535")
		}
		host, _, err := net.SplitHostPort(l.addressSoFar(path))
		if err != nil {
			host = "127.0.0.1"
		}
		return net.JoinHostPort(host, text), nil
	}
}

// addressSoFar returns the text at path of the layers merged so far.
func (l *loader) addressSoFar(path string) string {
	if l.layers.Exists(path) {
		return l.layers.String(path)
	}
	config := connector.DefaultConfig()
	for _, k := range l.keys {
		if k.path == path {
			return k.of(&config).String()
		}
	}
	return ""
}

// withoutTLS says that a TLS port alone makes no TLS listener, as in KubeMQ.
func withoutTLS(l *loader) (string, bool) {
	address := l.addressSoFar("listeners.tls.address")
	return "a TLS listener needs listeners.tls.address, cert_file and key_file", address == "" || address == "off"
}
