package bridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

const (
	// browsePage and browseBytes bound what is read from a stream at once.
	browsePage  = 256
	browseBytes = 256 << 10
)

// BrowseReceiver takes the messages of a queue that is looked at.
type BrowseReceiver interface {
	// Room is how many octets it takes now. Zero: none; Browse.Wake says when to ask again.
	Room() int
	// DeliverBrowsed hands over the part of a MESSAGE that begins with the destination header. It must not block, nor
	// keep or change tail. False: the receiver takes no more.
	DeliverBrowsed(tail []byte) bool
	// Lost says that the look ended early.
	Lost(err error)
}

// Browse shows the messages of a queue to one receiver and takes none. Its methods are safe for concurrent use.
type Browse struct {
	b        *Bridge
	stream   string
	filters  []string // the subjects of its messages
	first    uint64   // what is before does not belong to the queue any more
	view     View
	receiver BrowseReceiver
	wake     chan struct{}
	stop     chan struct{}
	stopOnce sync.Once
	done     chan struct{}
}

// BrowseQueue begins to show what the route's queue holds now, those messages included that are delivered and not
// acknowledged; the last MESSAGE has the header browser:end. A queue that does not exist is shown as empty and not made.
// The caller ends it with Stop.
func (b *Bridge) BrowseQueue(route router.Route, view View, r BrowseReceiver) (*Browse, error) {
	s := &Browse{
		b: b, stream: QueueStream(route.Channel), filters: []string{route.Subject}, view: view.of(route), receiver: r,
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	if route.Bound != nil {
		if err := s.bind(route); err != nil {
			return nil, err
		}
	}
	if b.gone.has(s.stream) {
		return nil, ErrNoStream
	}
	if !b.launch(s.run) {
		return nil, ErrStopped
	}
	return s, nil
}

// bind looks at what a consumer that the destination is bound to has before it.
func (s *Browse) bind(route router.Route) error {
	d, err := s.b.bound.durable(route.Bound)
	if err != nil {
		return err
	}
	ctx, cancel := s.b.within(apiTimeout)
	defer cancel()
	c, err := s.b.cfg.JS.Consumer(ctx, d.stream, d.name)
	if err != nil {
		return notThere(route.Bound, err)
	}
	info := c.CachedInfo()
	s.stream, s.first = d.stream, info.AckFloor.Stream+1
	switch {
	case info.Config.FilterSubject != "":
		s.filters = []string{info.Config.FilterSubject}
	case len(info.Config.FilterSubjects) > 0:
		s.filters = info.Config.FilterSubjects
	default:
		s.filters = []string{">"}
	}
	return nil
}

// subject is what the stream is asked for, and wanted whether a message that it has is one of the queue's.
func (s *Browse) subject() string {
	if len(s.filters) == 1 {
		return s.filters[0]
	}
	return ">"
}

func (s *Browse) wanted(subject string) bool {
	return len(s.filters) == 1 || slices.ContainsFunc(s.filters, func(filter string) bool { return router.Match(filter, subject) })
}

// Wake says that the receiver may have room again. It does not block.
func (s *Browse) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Halt ends the look and does not wait.
func (s *Browse) Halt() { s.stopOnce.Do(func() { close(s.stop) }) }

// Halted is closed after the last delivery.
func (s *Browse) Halted() <-chan struct{} { return s.done }

// Stop ends the look. It returns after the last delivery. There is nothing to give back: held is not called.
func (s *Browse) Stop(func() []Delivery) {
	s.Halt()
	<-s.done
}

func (s *Browse) run() {
	defer close(s.done)
	if err := s.show(); err != nil && !errors.Is(err, ErrStopped) {
		s.receiver.Lost(fmt.Errorf("browsing %s: %w", s.stream, err))
	}
}

func (s *Browse) show() error {
	info, err := s.info()
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		info = &jetstream.StreamInfo{}
	case err != nil:
		return err
	}
	read := s.readPage
	if !info.Config.AllowDirect {
		read = s.readOne
	}
	next, last := max(info.State.FirstSeq, s.first), info.State.LastSeq
	for more := info.State.Msgs > 0; more && next <= last; {
		room, err := s.room()
		if err != nil {
			return err
		}
		// Over an outage it goes on behind what was shown.
		err = s.b.persist(func(ctx context.Context) (err error) {
			next, more, err = read(ctx, next, last, room)
			if errors.Is(err, ErrNoStream) {
				more, err = s.unanswered(ctx)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if _, err := s.room(); err != nil {
		return err
	}
	s.receiver.DeliverBrowsed(appendBrowseEnd(nil, s.view.Version, s.view.Destination))
	return nil
}

// unanswered says whether there may be more in a stream from which nobody reads: it was empty, and is deleted, or on an
// external NATS the server is away that has it.
func (s *Browse) unanswered(ctx context.Context) (more bool, err error) {
	_, err = s.b.info(ctx, s.stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, nil
	case err == nil && s.b.cfg.External != nil:
		err = nats.ErrNoResponders
	case err == nil:
		err = ErrNoStream
	}
	return true, err
}

func (s *Browse) info() (info *jetstream.StreamInfo, err error) {
	err = s.b.persist(func(ctx context.Context) (err error) {
		info, err = s.b.info(ctx, s.stream)
		return err
	})
	return info, err
}

func appendBrowseEnd(dst []byte, v frame.Version, destination string) []byte {
	dst = frame.AppendHeader(dst, v, "destination", destination)
	return append(dst, "browser:end\ncontent-length:0\n\n\x00\n"...)
}

// room waits until the receiver has some.
func (s *Browse) room() (int, error) {
	for {
		if room := s.receiver.Room(); room > 0 {
			return room, nil
		}
		select {
		case <-s.wake:
		case <-s.stop:
			return 0, ErrStopped
		}
	}
}

// pageRequest asks a stream for its next messages of a subject.
type pageRequest struct {
	Sequence uint64 `json:"seq"`
	Subject  string `json:"next_by_subj"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
}

// readPage shows up to a page of messages from a sequence on, read directly from the stream's store. It returns where
// to go on, also after an error, and whether there may be more.
func (s *Browse) readPage(ctx context.Context, from, last uint64, room int) (next uint64, more bool, err error) {
	inbox := s.b.cfg.Control.NewInbox()
	page := make(chan *nats.Msg, browsePage+1)
	sub, err := s.b.cfg.Control.ChanSubscribe(inbox, page)
	if err != nil {
		return from, true, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and then it is done
	request, err := json.Marshal(pageRequest{Sequence: from, Subject: s.subject(), Batch: browsePage, MaxBytes: min(room, browseBytes)})
	if err == nil {
		err = s.b.cfg.Control.PublishRequest(s.b.api+"DIRECT.GET."+s.stream, inbox, request)
	}
	if err != nil {
		return from, true, err
	}
	for next = from; ; {
		select {
		case m := <-page:
			number := lastOf(m.Header, "Nats-Sequence")
			if number == "" { // Not a message, whose own headers may say anything.
				more, err := endOfPage(m)
				return next, more, err
			}
			seq, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return next, true, fmt.Errorf("direct get: %w", err)
			}
			at, err := time.Parse(time.RFC3339Nano, lastOf(m.Header, "Nats-Time-Stamp"))
			if err != nil {
				return next, true, fmt.Errorf("direct get: %w", err)
			}
			if seq > last {
				return seq, false, nil
			}
			next = seq + 1
			if s.wanted(lastOf(m.Header, "Nats-Subject")) && !s.deliver(m, seq, at) {
				return next, true, ErrStopped
			}
		case <-ctx.Done():
			return next, true, ctx.Err()
		case <-s.stop:
			return next, true, ErrStopped
		}
	}
}

// endOfPage reads the word that ends a page: whether there is more behind it.
func endOfPage(m *nats.Msg) (more bool, err error) {
	switch code := m.Header.Get("Status"); code {
	case "204":
		return m.Header.Get("Nats-Num-Pending") != "0", nil
	case "404":
		return false, nil
	case "503":
		return true, ErrNoStream
	default:
		return true, fmt.Errorf("direct get: %s %s", code, m.Header.Get("Description"))
	}
}

// readOne shows one message, for a stream that may not be read directly.
func (s *Browse) readOne(ctx context.Context, from, last uint64, _ int) (next uint64, more bool, err error) {
	request, err := json.Marshal(pageRequest{Sequence: from, Subject: s.subject()})
	if err != nil {
		return from, true, err
	}
	answer, err := s.b.cfg.Control.RequestWithContext(ctx, s.b.api+"STREAM.MSG.GET."+s.stream, request)
	if err != nil {
		return from, true, err
	}
	var got struct {
		Error   *apiError `json:"error"`
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   string    `json:"hdrs"`
			Data     string    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return from, true, err
	}
	const codeNoMessage, codeNoStream = 10037, 10059
	switch {
	case got.Error != nil && got.Error.Code == codeNoMessage:
		return from, false, nil
	case got.Error != nil && got.Error.Code == codeNoStream:
		return from, true, ErrNoStream
	case got.Error != nil:
		return from, true, got.Error
	case got.Message.Sequence > last:
		return from, false, nil
	}
	m := &nats.Msg{}
	header, err := base64.StdEncoding.DecodeString(got.Message.Header)
	if err == nil && len(header) > 0 {
		m.Header, err = nats.DecodeHeadersMsg(header)
	}
	if err == nil {
		m.Data, err = base64.StdEncoding.DecodeString(got.Message.Data)
	}
	if err != nil {
		return from, true, err
	}
	if s.wanted(got.Message.Subject) && !s.deliver(m, got.Message.Sequence, got.Message.Time) {
		return from, true, ErrStopped
	}
	return got.Message.Sequence + 1, true, nil
}

// deliver shows one message unless its time is over. False: the receiver takes no more.
func (s *Browse) deliver(m *nats.Msg, seq uint64, at time.Time) bool {
	x := extras{seq: seq, timestamp: at.UnixMilli()}
	if end := x.expiry(m.Header); end > 0 && end <= time.Now().UnixMilli() {
		return true // JetStream is about to remove it.
	}
	return s.receiver.DeliverBrowsed(appendTail(nil, s.view.Version, s.view.Destination, m, &x))
}
