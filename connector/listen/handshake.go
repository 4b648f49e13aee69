package listen

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// handshakeTime bounds a handshake.
	handshakeTime = 5 * time.Second
	// maxHandshakes bounds those that are under way. One more ends the oldest: who has not finished while so many others came
	// is hardly a client.
	maxHandshakes = 512
	// answerTime is how long somebody who does not speak TLS has to read that he should.
	answerTime = 500 * time.Millisecond
	// maxFailureLines is how many failed handshakes are logged per second.
	maxFailureLines = 10
)

// handshaker is a listener whose connections have finished their handshakes, so that nobody waits for that of another.
type handshaker struct {
	net.Listener
	tls    *TLS
	config *tls.Config
	ready  chan net.Conn
	failed chan error // of Accept below
	done   chan struct{}
	work   sync.WaitGroup
	close  sync.Once
	err    error // of Close; set before done is closed

	mu      sync.Mutex
	closing bool       // guarded by mu
	pending *list.List // guarded by mu; of net.Conn, the oldest first
	second  time.Time  // guarded by mu; in which lines were counted
	lines   int        // guarded by mu
	silent  int        // guarded by mu; failures that were not logged
}

// Listen returns a listener that serves TLS on the connections of l, and owns l; call it once. Its Accept returns connections, each a
// *tls.Conn, whose handshake is done. Failed handshakes are logged with their reason, and bounded in number and time;
// somebody who speaks STOMP or HTTP in clear is told that this port speaks TLS. Close ends what is under way.
func (t *TLS) Listen(l net.Listener) net.Listener {
	h := &handshaker{
		Listener: l, tls: t, config: t.Config(), pending: list.New(),
		ready: make(chan net.Conn), failed: make(chan error), done: make(chan struct{}),
	}
	h.work.Go(h.acceptAll)
	h.work.Go(func() { t.follow(h.done) })
	return h
}

// Accept implements net.Listener.
func (h *handshaker) Accept() (net.Conn, error) {
	select {
	case nc := <-h.ready:
		return nc, nil
	case err := <-h.failed:
		return nil, err
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Handshakes that are under way are cut off.
func (h *handshaker) Close() error {
	h.close.Do(func() {
		h.err = h.Listener.Close()
		close(h.done)
		h.mu.Lock()
		h.closing = true
		for e := h.pending.Front(); e != nil; e = e.Next() {
			_ = e.Value.(net.Conn).Close() // It is of no use any more.
		}
		h.mu.Unlock()
		h.work.Wait()
	})
	return h.err
}

func (h *handshaker) acceptAll() {
	for {
		nc, err := h.Listener.Accept()
		if err != nil {
			select {
			case h.failed <- err:
			case <-h.done:
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		if e := h.enter(nc); e != nil {
			h.work.Go(func() { h.shake(nc, e) })
		}
	}
}

// enter notes a handshake that begins, and ends the oldest if there are too many.
func (h *handshaker) enter(nc net.Conn) *list.Element {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		_ = nc.Close() // Nobody was promised anything.
		return nil
	}
	if h.pending.Len() >= maxHandshakes {
		oldest := h.pending.Front()
		_ = oldest.Value.(net.Conn).Close() // Its handshake ends with that.
		h.pending.Remove(oldest)
	}
	return h.pending.PushBack(nc)
}

func (h *handshaker) leave(e *list.Element) {
	h.mu.Lock()
	h.pending.Remove(e) // Does nothing if it was removed before.
	h.mu.Unlock()
}

// shake does one handshake and hands the connection over.
func (h *handshaker) shake(nc net.Conn, e *list.Element) {
	defer h.leave(e)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	secure := tls.Server(nc, h.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		h.report(nc, err)
		h.redirect(err)
		_ = nc.Close() // It is of no use any more.
		return
	}
	select {
	case h.ready <- secure:
	case <-h.done:
		_ = nc.Close() // Nobody was promised anything.
	}
}

// report logs a failure. Who only looks whether somebody listens, as load balancers do each second, is no failure.
func (h *handshaker) report(nc net.Conn, err error) {
	remote := nc.RemoteAddr().String()
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		h.tls.log.Debug("tls handshake given up", "remote", remote)
		return
	}
	if skipped, ok := h.mayLog(time.Now()); ok {
		var more []any
		if skipped > 0 {
			more = []any{"not_logged", skipped}
		}
		h.tls.log.With(more...).Info("tls handshake failed", "remote", remote, "err", reasonOf(err))
	}
}

// mayLog says whether one more failure may be logged now, and how many were not.
func (h *handshaker) mayLog(now time.Time) (skipped int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.second) >= time.Second {
		h.second, h.lines = now, 0
	}
	if h.lines >= maxFailureLines {
		h.silent++
		return 0, false
	}
	h.lines++
	skipped, h.silent = h.silent, 0
	return skipped, true
}

// reasonOf is an error on one line, with nothing in it that a terminal acts on.
func reasonOf(err error) string {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil {
		return "the client does not speak TLS"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, err.Error())
}

// What somebody is told who speaks in clear. STOMP's ERROR, and an answer of HTTP.
const (
	plainText  = "this port speaks TLS: connect with TLS, or to another port"
	plainError = "ERROR\nmessage:" + plainText + "\ncontent-type:text/plain;charset=utf-8\ncontent-length:58\n\n" + plainText + "\x00\n"
	plainHTTP  = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" + plainText + "\n"
)

// redirect answers who speaks in clear, and lets him read it.
func (h *handshaker) redirect(err error) {
	var plain tls.RecordHeaderError
	if !errors.As(err, &plain) || plain.Conn == nil {
		return
	}
	answer := ""
	begin := strings.TrimLeft(string(plain.RecordHeader[:]), "\r\n")
	for _, known := range []struct{ begin, answer string }{
		{"CONNECT", plainError}, {"STOMP", plainError}, {"GET /", plainHTTP}, {"POST ", plainHTTP}, {"HEAD ", plainHTTP}, {"OPTIONS", plainHTTP},
	} {
		if strings.HasPrefix(known.begin, begin) {
			answer = known.answer
			break
		}
	}
	if answer == "" {
		return
	}
	_ = plain.Conn.SetDeadline(time.Now().Add(answerTime)) // Fails only on a closed socket.
	if _, err := io.WriteString(plain.Conn, answer); err != nil {
		return
	}
	if half, ok := plain.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // Fails only on a closed socket.
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(plain.Conn, 64<<10)) // A close before that would reset, and lose the answer.
}
