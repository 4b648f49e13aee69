package bridge

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
)

// A reply address is the destination /reply/<node>.<name>, where anybody who knows it, on whatever node, can send to. It
// stands for the subject _natstomp.reply.<node>.<name>, to which that node listens. The name is one of
//
//	t and 128 random bits        the /temp-queue or /temp-topic of a connection of that node
//	n and a sealed NATS subject  where a native request that came through that node wants its answer
//
// so that no subject of NATS is shown, and none can be chosen, by a STOMP client.
const (
	addressSubject = "_natstomp.reply."
	addressPath    = "/reply/"

	temporary = 't'
	sealed    = 'n'

	// maxAddress is the octets of an address: those of any destination.
	maxAddress = 512
	// sealLife is how long a native request can be answered.
	sealLife = 24 * time.Hour
	// sealClock is the octets of the time in a seal, after which comes the subject.
	sealClock = 8
	// sealCount is the octets that make each seal's nonce, before its text.
	sealCount = 8
)

// ErrAddress says that a destination is no reply address that any node ever gave out.
var ErrAddress = errors.New("no reply address")

// Address is a reply address whose messages go to one receiver.
type Address struct {
	a    *addresses
	name string
}

// OpenAddress makes an address. It is live at once.
func (b *Bridge) OpenAddress(view View, r TopicReceiver) *Address {
	a := &Address{a: b.addresses, name: string(temporary) + randomToken()}
	a.Redirect(view, r)
	return a
}

// Redirect gives the messages of the address to another receiver.
func (a *Address) Redirect(view View, r TopicReceiver) {
	a.a.mu.Lock()
	a.a.open[a.name] = addressee{view, r}
	a.a.mu.Unlock()
}

// Close ends the address: what is sent to it is dropped and counted. A delivery may be under way.
func (a *Address) Close() {
	a.a.mu.Lock()
	delete(a.a.open, a.name)
	a.a.mu.Unlock()
}

// Channel is the address without its prefix, as SendToAddress takes it.
func (a *Address) Channel() string { return a.a.node + "." + a.name }

// String is the destination that answers are sent to.
func (a *Address) String() string { return addressPath + a.Channel() }

// IsAddress says whether a channel of /reply has the form of an address; only sending shows whether somebody is there.
func IsAddress(channel string) bool {
	if len(addressPath)+len(channel) > maxAddress || len(channel) < tokenLength+2 || channel[tokenLength] != '.' {
		return false
	}
	node, name := channel[:tokenLength], channel[tokenLength+1:]
	if !isToken(node) || !isToken(name[1:]) {
		return false
	}
	return name[0] == temporary && len(name) == tokenLength+1 || name[0] == sealed && len(name) > tokenLength
}

// isToken says whether all octets are those of base64url.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// toAddress is a message to an address of any node; without subject if the time of the address is over. ErrAddress says
// that it was forged.
func (b *Bridge) toAddress(channel string, headers []frame.Header, body []byte) (nats.Msg, error) {
	if !IsAddress(channel) {
		return nats.Msg{}, ErrAddress
	}
	subject := addressSubject + channel
	if name, ours := strings.CutPrefix(channel, b.addresses.node+"."); ours && name[0] == sealed {
		var err error
		if subject, err = b.addresses.unseal(name); err != nil || subject == "" {
			return nats.Msg{}, err
		}
	}
	return answering(subject, headers, body), nil
}

// answering is a message for whoever asked.
func answering(subject string, headers []frame.Header, body []byte) nats.Msg {
	m := nats.Msg{Subject: subject, Header: toNATS(headers), Data: body}
	m.Reply = replySubject(m.Header)
	return m
}

// replySubject is the NATS reply subject of a SEND whose reply-to is a reply address, so that native subscribers can
// answer it too.
func replySubject(h nats.Header) string {
	to := h["reply-to"]
	if len(to) == 0 {
		return ""
	}
	channel, ok := strings.CutPrefix(to[0], addressPath)
	if !ok || !IsAddress(channel) {
		return ""
	}
	return addressSubject + channel
}

// addresses are the reply addresses that this node gave out.
type addresses struct {
	b       *Bridge
	node    string
	sub     *nats.Subscription
	aead    cipher.AEAD
	seals   atomic.Uint64
	lost    atomic.Uint64
	scratch []byte // owned by the NATS dispatcher

	mu   sync.Mutex
	open map[string]addressee // guarded by mu; by name
}

type addressee struct {
	view     View
	receiver TopicReceiver
}

func newAddresses(b *Bridge) *addresses {
	return &addresses{b: b, node: randomToken(), open: make(map[string]addressee)}
}

func (a *addresses) start() error {
	var key [32]byte
	_, _ = rand.Read(key[:]) // Never fails.
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return err
	}
	if a.aead, err = cipher.NewGCM(block); err != nil {
		return err
	}
	if a.sub, err = a.b.cfg.Data.Subscribe(addressSubject+a.node+".*", a.receive); err != nil {
		return err
	}
	return a.sub.SetPendingLimits(-1, topicPendingBytes)
}

func (a *addresses) stop() {
	if a.sub != nil {
		_ = a.sub.Unsubscribe() // Fails only when the connection is gone, and then it is done.
	}
}

// receive runs on the NATS subscription's own goroutine, one message at a time.
func (a *addresses) receive(m *nats.Msg) {
	if noResponders(m) {
		return // Nobody subscribes to the topic that asked: as with any topic, that is no news.
	}
	name := m.Subject[len(addressSubject)+len(a.node)+1:]
	if name[0] == sealed {
		a.forward(m, name)
		return
	}
	a.mu.Lock()
	to, open := a.open[name]
	a.mu.Unlock()
	if !open {
		a.lost.Add(1)
		return
	}
	a.b.showReply(m)
	if len(m.Data) >= sharedTail {
		to.receiver.DeliverTopic(appendTail(make([]byte, 0, len(m.Data)+1024), to.view.Version, to.view.Destination, m, nil), true, "")
		return
	}
	a.scratch = appendTail(a.scratch[:0], to.view.Version, to.view.Destination, m, nil)
	to.receiver.DeliverTopic(a.scratch, false, "")
}

// forward sends an answer that another node took to the native requester.
func (a *addresses) forward(m *nats.Msg, name string) {
	subject, err := a.unseal(name)
	if err == nil && subject != "" {
		err = a.b.publish(&nats.Msg{Subject: subject, Reply: m.Reply, Header: m.Header, Data: m.Data})
	}
	if err != nil {
		a.lost.Add(1)
		a.b.log.Debug("answer to a native request was not forwarded", "err", err)
	}
}

// seal returns the name that stands for a NATS subject from now on.
func (a *addresses) seal(subject string, now time.Time) string {
	text := binary.BigEndian.AppendUint64(make([]byte, 0, sealClock+len(subject)), uint64(now.UnixMilli()))
	text = append(text, subject...)
	var nonce [12]byte
	count := nonce[len(nonce)-sealCount:]
	binary.BigEndian.PutUint64(count, a.seals.Add(1))
	out := append(make([]byte, 0, sealCount+len(text)+a.aead.Overhead()), count...)
	return string(sealed) + base64.RawURLEncoding.EncodeToString(a.aead.Seal(out, nonce[:], text, nil))
}

// unseal returns the subject that a name stands for: ErrAddress if it is forged, "" if its time is over, which is
// counted.
func (a *addresses) unseal(name string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(name[1:])
	if err != nil || len(raw) < sealCount {
		return "", ErrAddress
	}
	var nonce [12]byte
	copy(nonce[len(nonce)-sealCount:], raw[:sealCount])
	text, err := a.aead.Open(nil, nonce[:], raw[sealCount:], nil)
	if err != nil || len(text) < sealClock {
		return "", ErrAddress
	}
	made := time.UnixMilli(int64(binary.BigEndian.Uint64(text)))
	if time.Since(made) > sealLife {
		a.lost.Add(1)
		return "", nil
	}
	return string(text[sealClock:]), nil
}

// replyable says whether a client's answer may be sent to the reply subject of a native message: never to what NATS
// itself listens to, nor to what other patterns or natstomp keep for themselves.
func (b *Bridge) replyable(subject string) bool {
	if subject == "" || subject[0] == '$' || strings.ContainsAny(subject, "*>") {
		return false
	}
	if subject[0] == '_' {
		channel, ours := strings.CutPrefix(subject, addressSubject)
		return ours && IsAddress(channel) || !ours && !strings.HasPrefix(subject, "_natstomp.")
	}
	return !b.cfg.Router.Reserved(subject)
}

// showReply makes the reply subject of a message visible as a reply-to that stands for it.
func (b *Bridge) showReply(m *nats.Msg) {
	if m.Reply == "" || !b.replyable(m.Reply) {
		return
	}
	channel, known := strings.CutPrefix(m.Reply, addressSubject)
	if !known {
		channel = b.addresses.node + "." + b.addresses.seal(m.Reply, time.Now())
	}
	if address := addressPath + channel; len(address) <= maxAddress {
		setHeader(m, "reply-to", address)
	}
}
