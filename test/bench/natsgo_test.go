package bench_test

import (
	"errors"

	"github.com/nats-io/nats.go"
)

// connect opens a connection of nats.go that belongs to p.
func connect(p *peer, url string) (*nats.Conn, error) {
	nc, err := nats.Connect(url, nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { p.fail(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				err = errors.New("disconnected")
			}
			p.fail(err)
		}))
	if err != nil {
		return nil, err
	}
	closed := nc.StatusChanged(nats.CLOSED)
	p.onClose(func() {
		nc.Close()
		<-closed
	})
	return nc, nil
}

// goTopic is a subject through nats.go, each publisher and subscriber with a connection of its own.
func goTopic(url, subject string, w work) (*peer, error) {
	p := newPeer("nats.go")
	for range w.subscribers {
		nc, err := connect(p, url)
		if err != nil {
			return p, err
		}
		s := p.sink()
		sub, err := nc.Subscribe(subject, func(*nats.Msg) { s.add(1) })
		if err != nil {
			return p, err
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return p, err
		}
		if err := nc.Flush(); err != nil {
			return p, err
		}
	}
	var publishers []*nats.Conn
	for range w.publishers {
		nc, err := connect(p, url)
		if err != nil {
			return p, err
		}
		publishers = append(publishers, nc)
	}
	p.batch = w.batch(bodySize)
	next := 0
	p.send = func(n int) error {
		nc := publishers[next]
		next = (next + 1) % len(publishers)
		for range n {
			if err := nc.Publish(subject, body); err != nil {
				return err
			}
		}
		return nil // The connection's own flusher sends what is left.
	}
	return p, nil
}
