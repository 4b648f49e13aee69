package connector

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/natstomp/natstomp/connector/frame"
)

// Message is a message as Subscribe hands it over. It belongs to the receiver.
type Message struct {
	// Destination is where it was sent, as MESSAGE shows it.
	Destination string
	// Headers are those of MESSAGE, without those that a session needs: subscription, message-id, ack, content-length.
	Headers map[string]string
	// Body is the octets; nil where there are none.
	Body []byte
}

// Handler takes the messages of one Subscription, one at a time. Nil acknowledges the message. An error, which is
// logged, gives a message of a queue back as a NACK does: it comes again later. A panic counts as an error. ctx ends when
// the session is cut, as by a Shutdown that takes too long; what is returned then has no effect.
type Handler func(ctx context.Context, m Message) error

// Subscription is a listener that Subscribe has started. Its methods are safe for concurrent use.
type Subscription struct {
	srv         *Server
	destination string
	local       *programEnd
	handle      Handler
	ctx         context.Context // of the handler's calls
	cancel      context.CancelFunc
	closing     atomic.Bool
	writing     sync.Mutex    // held while a message is handled: what is written then belongs to it
	done        chan struct{} // closed when the listener has ended
	err         error         // set before done is closed
}

// Subscribe listens to a destination as a client does: to a topic, where wildcards count, or to a queue, whose messages
// it shares with all other consumers. Headers are those of a SUBSCRIBE (x-group, prefetch-count, x-ack-wait, ...); nil
// for none; id, ack and receipt cannot be given. A message that is published after Subscribe has returned is seen. ctx
// bounds the call only. handle runs on one goroutine, which ends by Close, by Shutdown, or when natstomp ends the session,
// for instance as a slow consumer; Done and Err tell. Subscribe several times for more at once. Rights are not checked.
func (s *Server) Subscribe(ctx context.Context, destination string, headers map[string]string, handle Handler) (*Subscription, error) {
	l := &Subscription{srv: s, destination: destination, handle: handle, done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := l.open(ctx, headers); err != nil {
		l.cancel()
		return nil, fmt.Errorf("subscribing to %s: %w", destination, err)
	}
	s.mu.Lock()
	stopped := s.stopping.Load()
	if !stopped {
		s.subscribed[l] = struct{}{}
	}
	s.mu.Unlock()
	if stopped {
		l.cancel()
		l.local.close()
		return nil, ErrStopped
	}
	go l.run()
	return l, nil
}

// open makes the session and sends SUBSCRIBE.
func (l *Subscription) open(ctx context.Context, headers map[string]string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	own := []frame.Header{
		header("destination", l.destination), header("id", "1"), header("ack", ackIndividual.String()), header("receipt", "open"),
	}
	f, err := programFrame(frame.Subscribe, own, headers, nil)
	if err != nil {
		return err
	}
	if l.local, err = l.srv.openLocal(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, l.local.close)
	err = l.local.exchange(f, frame.Receipt)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		l.local.close()
	}
	return err
}

// Close ends the subscription. It returns when a call of the handler that was under way has returned and its
// acknowledgement is sent; what was not handled goes back to its queue. It must not be called by the handler. The error
// is that of Err if the subscription had ended by itself.
func (l *Subscription) Close() error {
	l.stop()
	<-l.done
	return l.err
}

// Done is closed when the subscription has ended, however.
func (l *Subscription) Done() <-chan struct{} { return l.done }

// Err says why the subscription ended: nil while it runs and after Close, ErrStopped after Shutdown, a *ClientError with
// what a client would be told when natstomp ended it.
func (l *Subscription) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// await returns when the listener has ended, or with ctx; then the handler is told.
func (l *Subscription) await(ctx context.Context) {
	select {
	case <-l.done:
	case <-ctx.Done():
		l.cancel()
	}
}

// stop takes leave of the session after the message that is handled; run ends with the answer.
func (l *Subscription) stop() {
	if l.closing.Swap(true) {
		return
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	leave := frame.Frame{Command: frame.Unsubscribe, Headers: []frame.Header{header("id", "1"), header("receipt", "close")}}
	_ = l.local.send(&leave) // If the session has ended, so does run.
}

// run takes messages until the session ends.
func (l *Subscription) run() {
	err := l.srv.why(l.receive())
	l.local.close()
	l.cancel()
	l.srv.mu.Lock()
	delete(l.srv.subscribed, l)
	l.srv.mu.Unlock()
	if err != nil {
		l.srv.log.Warn("subscription of the program ended", "destination", l.destination, "err", err)
	}
	l.err = err
	close(l.done)
}

func (l *Subscription) receive() error {
	for {
		f, err := l.local.receive(frame.Message, frame.Receipt)
		switch {
		case err != nil:
			return err
		case f.Command == frame.Receipt:
			return nil // Of UNSUBSCRIBE.
		}
		l.take(f)
	}
}

// take handles one message and answers it. After Close it does nothing: the message goes back unanswered.
func (l *Subscription) take(f *frame.Frame) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.closing.Load() {
		return
	}
	answer := frame.Frame{Command: frame.Ack, Headers: []frame.Header{header("id", f.Get("ack"))}}
	if err := l.call(messageOf(f)); err != nil {
		l.srv.log.Warn("message not handled", "destination", l.destination, "err", err)
		answer.Command = frame.Nack
	}
	_ = l.local.send(&answer) // Why a session does not read is what it sends next.
}

// call calls the handler.
func (l *Subscription) call(m Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.srv.log.Error("panic in a handler", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.handle(l.ctx, m)
}

// messageOf copies a MESSAGE. Repeated headers do not occur on one.
func messageOf(f *frame.Frame) Message {
	m := Message{Headers: make(map[string]string, len(f.Headers))}
	for _, h := range f.Headers {
		switch string(h.Name) {
		case "destination":
			m.Destination = string(h.Value)
		case "subscription", "message-id", "ack", "content-length":
		default:
			m.Headers[string(h.Name)] = string(h.Value)
		}
	}
	if len(f.Body) > 0 {
		m.Body = append([]byte(nil), f.Body...)
	}
	return m
}
