package conformance

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// natsConn returns the run's own NATS connection.
func (r *runner) natsConn() (*nats.Conn, error) {
	if r.nc == nil {
		nc, err := nats.Connect(r.env.Server.NATSURL, nats.NoReconnect())
		if err != nil {
			return nil, err
		}
		r.nc = nc
	}
	return r.nc, nil
}

func (r *runner) nativeStep(st step) error {
	nc, err := r.natsConn()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // Steps that poll have an end of their own.
	defer cancel()
	first := r.expand(st.words[0])
	switch st.verb {
	case "nats":
		return r.natsSubscribe(st)
	case "nats>":
		m, err := r.natsMsg(st)
		if err != nil {
			return err
		}
		if err := nc.PublishMsg(m); err != nil {
			return err
		}
		return nc.Flush()
	case "nats<":
		sub, err := r.sub(first)
		if err != nil {
			return err
		}
		m, err := sub.NextMsg(patience)
		if err != nil {
			return fmt.Errorf("waiting for a NATS message: %w", err)
		}
		return r.matchNATS(st, withReply(m), m.Data)
	case "nats<none":
		return r.natsNone(first)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	switch st.verb {
	case "js>":
		m, err := r.natsMsg(st)
		if err != nil {
			return err
		}
		_, err = js.PublishMsg(ctx, m)
		return err
	case "js<":
		return r.pull(ctx, js, first, st)
	default:
		return r.streamStep(ctx, js, st)
	}
}

func (r *runner) natsSubscribe(st step) error {
	if st.words[0] != "sub" {
		return fmt.Errorf("script: unknown step nats %s", st.words[0])
	}
	group := ""
	if len(st.words) > 3 {
		group = r.expand(st.words[3])
	}
	sub, err := r.nc.QueueSubscribeSync(r.expand(st.words[2]), group)
	if err != nil {
		return err
	}
	r.subs[r.expand(st.words[1])] = sub
	return r.nc.Flush()
}

func (r *runner) natsMsg(st step) (*nats.Msg, error) {
	m := nats.NewMsg(r.expand(st.words[0]))
	m.Data = []byte(r.expand(st.body))
	for _, w := range st.words[1:] {
		if reply, ok := strings.CutPrefix(w, "@reply="); ok {
			m.Reply = r.expand(reply)
			continue
		}
		name, value, ok := strings.Cut(w, ":")
		if !ok {
			return nil, fmt.Errorf("script: %q is no header", w)
		}
		m.Header[name] = append(m.Header[name], r.expand(value))
	}
	return m, nil
}

func (r *runner) sub(name string) (*nats.Subscription, error) {
	sub := r.subs[name]
	if sub == nil {
		return nil, fmt.Errorf("script: no NATS subscription %s", name)
	}
	return sub, nil
}

// natsNone asserts that nothing waits for the subscription: what the server sent before the flush is there after it.
func (r *runner) natsNone(name string) error {
	sub, err := r.sub(name)
	if err != nil {
		return err
	}
	if err := r.nc.Flush(); err != nil {
		return err
	}
	n, _, err := sub.Pending()
	if err == nil && n > 0 {
		m, _ := sub.NextMsg(patience)
		err = fmt.Errorf("got %d NATS messages, the first on %s: %v %.300q", n, m.Subject, m.Header, m.Data)
	}
	return err
}

// replyWord is the word that stands for the reply subject of a NATS message.
const replyWord = "@reply"

// withReply returns the headers of a message and, as another, its reply subject.
func withReply(m *nats.Msg) nats.Header {
	h := nats.Header{}
	for name, values := range m.Header {
		h[name] = values
	}
	if m.Reply != "" {
		h[replyWord] = []string{m.Reply}
	}
	return h
}

func (r *runner) matchNATS(st step, h nats.Header, body []byte) error {
	got := message{body: body}
	for name, values := range h {
		for _, v := range values {
			got.headers = append(got.headers, stompclient.Header{Name: name, Value: v})
		}
	}
	sort.Slice(got.headers, func(i, j int) bool { return got.headers[i].Name < got.headers[j].Name })
	st.words = st.words[1:]
	found, err := r.match(st, got)
	if err != nil {
		return fmt.Errorf("%w\n\tgot the NATS message %v %.300q", err, h, body)
	}
	for name, value := range found {
		r.vars[name] = value
	}
	return nil
}

// pull takes one message of a queue through the durable that natstomp shares, and acks it.
func (r *runner) pull(ctx context.Context, js jetstream.JetStream, channel string, st step) error {
	return r.nextOf(ctx, js, rig.QueueStream(channel), "stomp", st)
}

// poll asks again and again until the answer is nil, or else for the usual time.
func poll(ask func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		err := ask()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-tick.C
	}
}

// gone is an error while there is a stream of a queue.
func gone(ctx context.Context, js jetstream.JetStream, channel string) error {
	_, err := js.Stream(ctx, rig.QueueStream(channel))
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case err == nil:
		return errors.New("the queue's stream is still there")
	}
	return err
}

// waiting is an error unless so many pulls wait at the durable of a queue.
func waiting(ctx context.Context, js jetstream.JetStream, channel, number string) error {
	want, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	c, err := js.Consumer(ctx, rig.QueueStream(channel), "stomp")
	if err != nil {
		return err
	}
	if got := c.CachedInfo().NumWaiting; got != want {
		return fmt.Errorf("pulls that wait: got %d, want %d", got, want)
	}
	return nil
}

// count is an error unless the stream of a queue holds so many messages.
func count(ctx context.Context, js jetstream.JetStream, channel, number string) error {
	want, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, rig.QueueStream(channel))
	if errors.Is(err, jetstream.ErrStreamNotFound) && want == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return err
	}
	if got := info.State.Msgs; got != want {
		return fmt.Errorf("messages in the stream: got %d, want %d%s", got, want, firstOf(ctx, stream, info))
	}
	return nil
}

// firstOf describes the first message of a stream and what its consumers have done, for a failure.
func firstOf(ctx context.Context, stream jetstream.Stream, info *jetstream.StreamInfo) string {
	m, err := stream.GetMsg(ctx, info.State.FirstSeq)
	if err != nil {
		return fmt.Sprintf("; the first: %v", err)
	}
	text := fmt.Sprintf("; the first, of %d to %d: %s %v %.100q", m.Sequence, info.State.LastSeq, m.Subject, m.Header, m.Data)
	consumers := stream.ListConsumers(ctx)
	for c := range consumers.Info() {
		text += fmt.Sprintf("; %s delivered %d of %d, acked %d, unacked %d, again %d, waiting %d", c.Name,
			c.Delivered.Stream, c.Delivered.Consumer, c.AckFloor.Stream, c.NumAckPending, c.NumRedelivered, c.NumPending)
	}
	return text
}
