package cluster_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a link to a server that can be cut: then it carries nothing, and says nothing about it either.
type proxy struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex
	open  sync.Cond
	cut   bool                  // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu
	ended bool                  // guarded by mu
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: to, conns: map[net.Conn]struct{}{}}
	p.open.L = &p.mu
	p.wg.Go(p.accept)
	t.Cleanup(p.end)
	return p
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	if !p.pass(c) {
		return
	}
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer s.Close()
	if !p.pass(s) {
		return
	}
	defer func() {
		p.mu.Lock()
		delete(p.conns, c)
		delete(p.conns, s)
		p.mu.Unlock()
	}()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			_, _ = io.Copy(gate{p, pair[0]}, pair[1]) // Ends with either side.
			_ = c.Close()
			_ = s.Close()
		})
	}
	both.Wait()
}

// pass notes a connection and waits while the link is cut. false: the proxy has ended.
func (p *proxy) pass(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	for p.cut && !p.ended {
		p.open.Wait()
	}
	return !p.ended
}

// gate lets octets through while the link is whole.
type gate struct {
	p *proxy
	c net.Conn
}

func (g gate) Write(b []byte) (int, error) {
	g.p.mu.Lock()
	for g.p.cut && !g.p.ended {
		g.p.open.Wait()
	}
	g.p.mu.Unlock()
	return g.c.Write(b)
}

// hang cuts the link: nothing passes, and nobody is told.
func (p *proxy) hang() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
}

// sever cuts the link and ends all connections; what was on its way is lost.
func (p *proxy) sever() {
	p.mu.Lock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
}

// heal makes the link whole again.
func (p *proxy) heal() {
	p.mu.Lock()
	p.cut = false
	p.mu.Unlock()
	p.open.Broadcast()
}

func (p *proxy) end() {
	_ = p.l.Close()
	p.mu.Lock()
	p.ended = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.open.Broadcast()
	p.wg.Wait()
}
