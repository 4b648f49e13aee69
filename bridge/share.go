package bridge

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/natstomp/natstomp/router"
)

const (
	// pinHeader tells the subscription that has an exclusive queue what it is known by.
	pinHeader = "Nats-Pin-Id"
	// pinTTL is after what time an exclusive queue passes to another subscription when that which has it is silent.
	pinTTL = ackWait
	// pinPause bounds how long an exclusive queue delivers nothing while it passes on.
	pinPause = 3 * time.Second
	// topPriority is the largest priority of a subscription; JetStream counts the other way round.
	topPriority = 9
)

// join returns the queue of a route, made if need be, with one subscription more.
func (qs *queues) join(route router.Route, autoDelete bool) (*queue, error) {
	for {
		q, err := qs.get(route, true)
		if err != nil {
			return nil, err
		}
		if !q.window.join() {
			continue // Deleted meanwhile.
		}
		if err = qs.presence.update(q); err == nil && autoDelete && !q.settings.Keep {
			err = qs.markAutoDelete(q)
		}
		if err != nil {
			qs.part(q)
			return nil, err
		}
		return q, nil
	}
}

// part ends one subscription of a queue.
func (qs *queues) part(q *queue) {
	q.window.part()
	if err := qs.presence.update(q); err != nil {
		qs.b.log.Debug("the end of a queue's use was not told", "stream", q.stream, "err", err)
	}
	if unused, _ := q.window.free(); unused {
		qs.watch(q)
	}
}

// part ends the use of the subscription's queue, or durable subscription.
func (s *QueueSubscription) part() {
	if s.q != nil {
		s.b.queues.part(s.q)
	} else {
		s.b.attached.drop(s)
	}
}

// rejoin goes on with the queue that takes the place of one that natstomp deleted.
func (s *QueueSubscription) rejoin() {
	q, err := s.b.queues.join(s.q.route(), s.options.AutoDelete)
	if err != nil {
		s.removed(err)
		return
	}
	s.place.unfollow(s)
	s.part()
	s.q, s.d, s.sizes = q, q.durable, &q.durable.sizes
	s.place, s.credit = q.place, markedCredit{s, s.receiver}
	s.pin, s.more, s.none, s.tooLarge = "", false, false, 0
	s.retryAt = time.Time{}
	s.place.follow(s)
}

// appendGroup adds to a pull what the durable's policy wants to know.
func (s *QueueSubscription) appendGroup(request []byte) []byte {
	switch s.d.policy {
	case Exclusive:
		request = append(request, `,"group":"`+group+`"`...)
		if s.pin != "" {
			request = append(append(append(request, `,"id":"`...), s.pin...), '"')
		}
	case Prioritized:
		request = append(request, `,"group":"`+group+`","priority":`...)
		request = strconv.AppendInt(request, int64(topPriority-s.options.Priority), 10)
	case Shared:
	}
	return request
}

// keepPin keeps an exclusive queue while no pull is open, since its messages wait for the client: it asks for a message
// that is too small to exist.
func (s *QueueSubscription) keepPin() {
	if s.pin == "" || time.Since(s.pinned) < pinTTL/3 {
		return
	}
	s.pinned = time.Now()
	request := append(s.appendGroup([]byte(`{"batch":1,"max_bytes":1,"no_wait":true`)), '}')
	if err := s.b.cfg.Control.PublishRequest(s.next(), s.inbox+".pin", request); err != nil {
		s.b.log.Debug("exclusive queue may pass on", "stream", s.from.stream, "err", err)
	}
}

// pausePinned keeps an exclusive queue from delivering until resume is called, or for a moment if it is not: whoever
// waits for a queue that is another's makes JetStream put what is given back behind the rest, one by one.
func (s *QueueSubscription) pausePinned() (resume func()) {
	if s.pin == "" {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	if _, err := s.b.cfg.JS.PauseConsumer(ctx, s.from.stream, s.from.name, time.Now().Add(pinPause)); err != nil {
		s.b.log.Debug("exclusive queue may pass on out of order", "stream", s.from.stream, "err", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
		defer cancel()
		if _, err := s.b.cfg.JS.ResumeConsumer(ctx, s.from.stream, s.from.name); err != nil {
			s.b.log.Debug("exclusive queue passes on later", "stream", s.from.stream, "err", err)
		}
	}
}

// unpin lets an exclusive queue pass to the next subscription at once.
func (s *QueueSubscription) unpin() {
	if s.pin == "" {
		return
	}
	if err := s.unpinOwn(); err != nil {
		s.b.log.Debug("exclusive queue passes on later", "stream", s.from.stream, "err", err)
	}
}

func (s *QueueSubscription) unpinOwn() error {
	subject := s.from.stream + "." + s.from.name
	answer, err := s.b.cfg.Control.Request(s.b.api+"CONSUMER.INFO."+subject, nil, fetchTimeout)
	if err != nil {
		return err
	}
	var info struct {
		Groups []struct {
			Pinned string `json:"pinned_client_id"`
		} `json:"priority_groups"`
	}
	if err := json.Unmarshal(answer.Data, &info); err != nil {
		return err
	}
	if len(info.Groups) == 0 || info.Groups[0].Pinned != s.pin {
		return nil // It has passed on already.
	}
	_, err = s.b.cfg.Control.Request(s.b.api+"CONSUMER.UNPIN."+subject, []byte(`{"group":"`+group+`"}`), fetchTimeout)
	return err
}
