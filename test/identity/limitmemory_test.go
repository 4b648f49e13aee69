package identity_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

const (
	// holders is how many clients do the same, so that what else happens in the process counts little for each.
	holders = 96
	// slack is what a limit may cost above itself; noise is what else happened in the process, for each client.
	slack, noise = 4 << 10, 512
	// The fixed costs: what one thing of a kind takes, whatever it has in it. Each is measured by the row of its limit.
	perConnection, perSubscription, perTransaction, perFrame, perUnacked, perRequest = 16 << 10, 4 << 10, 256, 1 << 10, 1 << 10, 1 << 10
	// perEnded is what the runtime keeps of a goroutine that has ended, for the next one: NATS's client has one for each
	// subscription.
	perEnded = 640
)

// memory is one key of limits that bounds what a client makes the server hold: how a client comes to the limit, what of the
// heap it then has, and how it goes one further.
type memory struct {
	key     string
	set     func(*connector.Limits)
	first   string          // what the client has sent instead of its CONNECT
	short   func(m *holder) // what do would do with next to nothing of it, which is not counted
	do      func(m *holder) // what it does, and waits for
	octets  string          // what it sends then
	most    int             // octets that one client may take
	least   int             // octets that it takes at least, or nothing is measured
	above   string          // one octet, line or frame more; empty: nothing is refused
	refused string
	left    int // octets of each that may be left afterwards, besides slack
}

// holder is a client that comes to a limit.
type holder struct {
	*rig.Client
	g    *rig.Server
	name string
	from *rig.Client // who sends to it
}

// aloneKey is set in the environment of a process that has the heap to itself.
const aloneKey = "NATSTOMP_TEST_ALONE"

// alone runs a subtest in a process of its own, whose heap has nothing of other tests and other servers in it.
func alone(t *testing.T, name string, do func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		if os.Getenv(aloneKey) != "" {
			do(t)
			return
		}
		var pattern []string
		for part := range strings.SplitSeq(t.Name(), "/") {
			pattern = append(pattern, "^"+part+"$")
		}
		cmd := exec.Command(os.Args[0], "-test.run", strings.Join(pattern, "/"), "-test.count=1", "-test.v")
		cmd.Env = append(os.Environ(), aloneKey+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestLimitsMemory has a row for each limit that bounds memory, against a server over sockets: what lives in the heap for
// clients at the limit is no more than the limit and 4 KiB for each, and the costs that are said above. One more is an ERROR
// that names it, and then all of it is gone.
func TestLimitsMemory(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range append(heldOctets(), heldThings()...) {
		seen[row.key] = true
		name := row.key
		if row.above == "" && row.least == 0 {
			name += " stated"
		}
		alone(t, name, row.test)
	}
	for key, why := range map[string]string{
		"connect_timeout": "time", "heartbeat": "time", "write_stall": "time", "slow_consumer": "what happens at pending_bytes",
		"frames_per_second":    "time",
		"connections_per_user": "of connections",
		"queues":               "NATS holds them", "durables": "NATS holds them",
		"unacked_bytes":  "NATS and the client hold them: the row of unacked has what is here",
		"publish_window": "a frame that waits for NATS is in NATS's hands; its receipt counts for pending_bytes",
	} {
		if seen[key] {
			t.Errorf("limits.%s has a row, and a reason for none: %s", key, why)
		}
		seen[key] = true
	}
	for f := range reflect.TypeFor[connector.Limits]().Fields() {
		if key := f.Tag.Get("yaml"); !seen[key] {
			t.Errorf("limits.%s has neither row nor reason", key)
		}
	}
}

func (row *memory) test(t *testing.T) {
	g := rig.Start(t, func(c *connector.Config) {
		c.Listeners.Admin.Address = "127.0.0.1:0"
		c.RPC.StompResponders = true
		c.Logger = slog.New(slog.DiscardHandler) // What is logged is memory of the test.
		row.set(&c.Limits)
	})
	all := make([]*holder, holders)
	each := func(do func(*holder)) {
		for _, m := range all {
			if do != nil {
				do(m)
			}
		}
	}
	empty := inHeap()
	for i := range all {
		all[i] = &holder{Client: g.Come(rig.Visit{}), g: g, name: fmt.Sprint("h", i)}
		if row.first == "" {
			all[i].Login()
		}
	}
	row.send(t, g, all, row.first)
	each(row.short)
	_ = rig.Metric(t, g.At("admin"), "natstomp_pending_bytes") // The first scrape leaves something.
	begun := inHeap()
	if row.key == "connections" {
		begun = empty
	}
	each(row.do)
	row.send(t, g, all, row.octets)
	took := (inHeap() - begun) / holders
	t.Logf("%d octets, of at most %d", took, row.most)
	if took > row.most+noise {
		t.Errorf("a client at the limit takes %d octets, want at most %d", took, row.most)
	}
	if took < row.least {
		t.Errorf("a client at the limit takes %d octets: what it sends is not there, want at least %d", took, row.least)
	}
	if row.above == "" {
		return
	}
	each(func(m *holder) {
		m.Octets(row.above)
		m.Refused(row.refused)
		_ = m.Close()
	})
	rig.Holds(t, "end of all", func() bool {
		return rig.Metric(t, g.At("admin"), `natstomp_connections{transport="tcp",version="1.2"}`) == "0"
	})
	if left := (inHeap() - begun) / holders; left > row.left+slack {
		t.Errorf("%d octets of each are left", left)
	}
}

// send has all clients send octets, and waits until the server has read them.
func (row *memory) send(t *testing.T, g *rig.Server, all []*holder, octets string) {
	t.Helper()
	received := func() int {
		n, err := strconv.ParseFloat(rig.Metric(t, g.At("admin"), `natstomp_received_bytes_total{transport="tcp"}`), 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	if octets == "" {
		return
	}
	before := received()
	for _, m := range all {
		m.Octets(octets)
	}
	rig.Holds(t, "all of it", func() bool { return received() >= before+len(all)*len(octets) })
}

// inHeap is the octets in the heap that somebody still needs.
func inHeap() int {
	var m runtime.MemStats
	for last := 0; ; last = int(m.HeapAlloc) {
		runtime.GC() // Twice for what sync.Pool keeps.
		runtime.GC()
		runtime.ReadMemStats(&m)
		if now := int(m.HeapAlloc); now-last < slack && last-now < slack { // Two in a row are alike.
			return now
		}
	}
}

// calm has a reader see that its client does not send in bulk any more.
func (m *holder) calm() {
	for range 12 {
		m.Alive()
	}
}

// heldOctets are the limits on octets.
func heldOctets() []memory {
	x := func(n int) string { return strings.Repeat("x", n) }
	const send = "SEND\ndestination:/topic/a\n"
	large := func(l *connector.Limits) {
		l.HeaderLine, l.Passcode, l.FrameBeforeConnect, l.Body = 64<<10, 64<<10, 64<<10, 256<<10
		l.PendingBytes, l.TransactionBytes = 256<<10, 256<<10
	}
	lines := func(l *connector.Limits) { l.Headers, l.HeaderLine = 16, 4<<10 }
	before := func(l *connector.Limits) { large(l); lines(l); l.Passcode = 32 << 10 }
	line := "a:" + x(4<<10-2) + "\n"
	return []memory{
		{key: "header_line", set: large, octets: send + "a:" + x(64<<10-2), most: 64<<10 + slack, least: 64 << 10, above: "x", refused: "limits.header_line is 65536"},
		{key: "headers", set: lines, octets: send + strings.Repeat(line, 15), most: 16*len(line) + slack, least: 15 * len(line), above: "a:b\n", refused: "limits.headers is 16"},
		{
			key: "passcode", set: before, first: "C", octets: "ONNECT\npasscode:" + x(32<<10-len("passcode:")), most: 32<<10 + slack, least: 28 << 10,
			above: "x", refused: "limits.passcode is 32768",
		},
		{
			key: "frame_before_connect", set: before, first: "C", octets: "ONNECT\n" + strings.Repeat(line, 15) + "a:" + x(64<<10-1-len("CONNECT\na:")-15*len(line)),
			most: 64<<10 + slack, least: 60 << 10, above: "x", refused: "limits.frame_before_connect is 65536",
		},
		{key: "body", set: large, octets: send + "\n" + x(256<<10), most: 256<<10 + slack, least: 256 << 10, above: "x", refused: "limits.body is 262144"},
		{key: "body", set: large, octets: send + "content-length:262144\n\n", most: slack},
		{
			key: "destination", set: large, most: perSubscription + 512 + slack, least: 512,
			do:    func(m *holder) { m.Subscribe("1", "/topic/"+m.name+"/"+x(512-len("/topic/"+m.name+"/"))); m.calm() },
			above: "SEND\ndestination:/topic/" + x(512) + "\n\n\x00", refused: "limits.destination is 512",
		},
		{
			key: "id", set: large, most: perSubscription + 1<<10 + slack, least: 1 << 10,
			do:    func(m *holder) { m.Subscribe(x(1<<10), "/topic/"+m.name); m.calm() },
			above: "UNSUBSCRIBE\nid:" + x(1<<10+1) + "\n\n\x00", refused: "limits.id is 1024",
		},
		{
			key: "transaction_bytes", set: large, most: 256<<10 + slack, least: 240 << 10,
			do: func(m *holder) {
				m.Do("BEGIN", "transaction", "t")
				for range 4 {
					m.Publish("/topic/a", x(60<<10), "transaction", "t", "receipt", "r")
					m.Receipt("r")
				}
				m.calm()
			},
			above: "SEND\ndestination:/topic/a\ntransaction:t\n\n" + x(60<<10) + "\x00", refused: "limits.transaction_bytes is 262144",
		},
		{
			key: "pending_bytes", least: 180 << 10, most: 256<<10 + slack,
			set: func(l *connector.Limits) {
				large(l)
				l.Body, l.SlowConsumer, l.WriteStall = 60<<10, "drop", time.Minute
			},
			short: func(m *holder) { m.served(x(60<<10 - 100)) },
			do:    func(m *holder) { m.stuffed(x(60<<10-100), 180<<10) },
		},
	}
}

// served has some messages of that body come to the client, which reads them: what they go through stays.
func (m *holder) served(body string) {
	if err := m.NetConn().(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		panic(err)
	}
	m.from = m.g.Come(rig.Visit{})
	m.from.Login()
	m.Subscribe("1", "/topic/"+m.name)
	for range 4 {
		m.from.Publish("/topic/"+m.name, body)
		m.Next("MESSAGE")
	}
	m.calm()
	m.from.Alive()
}

// stuffed has so many octets wait to be written to the client, which reads nothing.
func (m *holder) stuffed(body string, least int) {
	for full := 0; full < 2; full++ { // Once more and again, when the kernel has taken its part.
		for range 20 {
			m.from.Publish("/topic/"+m.name, body)
		}
		m.from.Alive()
		for _, c := range m.g.Connections() {
			if c.Remote == m.NetConn().LocalAddr().String() && c.Pending < least {
				full = 0
			}
		}
	}
	for range 12 { // Its reader sees that it does not send in bulk any more.
		m.from.Alive()
	}
}

// heldThings are the limits on what there may be several of.
func heldThings() []memory {
	const many = 100
	set := func(l *connector.Limits) {
		l.Subscriptions, l.Transactions, l.TransactionFrames, l.Unacked, l.RPCPending = many, many, many, many, many
	}
	return []memory{
		{key: "connections", set: set, most: perConnection, least: 8 << 10},
		{
			key: "subscriptions", set: set, most: many * perSubscription, least: many * 512,
			do: func(m *holder) {
				for i := range many {
					m.Subscribe(fmt.Sprint(i), fmt.Sprint("/topic/", m.name, "/", i))
				}
				m.calm()
			},
			above: "SUBSCRIBE\nid:x\ndestination:/topic/x\n\n\x00", refused: "limits.subscriptions is 100", left: many * perEnded,
		},
		{
			key: "transactions", set: set, most: many * perTransaction, least: many * 64,
			do: func(m *holder) {
				for i := range many - 1 {
					m.Do("BEGIN", "transaction", fmt.Sprint(i))
				}
				m.calm() // By the last one that there may be.
			},
			above: "BEGIN\ntransaction:x\n\n\x00BEGIN\ntransaction:y\n\n\x00", refused: "limits.transactions is 100",
		},
		{
			key: "transaction_frames", set: set, most: many * perFrame, least: many * 64,
			do: func(m *holder) {
				m.Do("BEGIN", "transaction", "t")
				for i := range many {
					m.Publish("/topic/a", fmt.Sprint(i), "transaction", "t", "receipt", "r")
					m.Receipt("r")
				}
				m.calm()
			},
			above: "SEND\ndestination:/topic/a\ntransaction:t\n\nx\x00", refused: "limits.transaction_frames is 100",
		},
		{
			key: "unacked", set: set, most: many * perUnacked, least: many * 64,
			short: func(m *holder) {
				m.Subscribe("1", "/queue/"+m.name, "ack", "client-individual", "prefetch-count", fmt.Sprint(many))
				m.Publish("/queue/"+m.name, "x")
				m.Ask("ACK", "id", m.Next("MESSAGE").Get("ack"))
			},
			do: func(m *holder) {
				for range many + 5 {
					m.Publish("/queue/"+m.name, "x")
				}
				for range many {
					m.Next("MESSAGE")
				}
				m.calm() // Nothing more has come.
			},
		},
		{
			key: "rpc_pending", set: set, most: many * perRequest, least: many * 128,
			do: func(m *holder) {
				m.Subscribe("1", "/query/"+m.name)
				m.Subscribe("2", "/reply/a")
				for range many {
					m.Publish("/query/"+m.name, "x", "reply-to", "/reply/a", "timeout", "30000")
					m.Next("MESSAGE")
				}
				m.Publish("/query/"+m.name, "x", "reply-to", "/reply/a")
				if f := m.Next("MESSAGE"); f.Get("x-error") != "overload" {
					panic(f.String())
				}
				m.calm()
			},
		},
	}
}
