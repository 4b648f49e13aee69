package interop_test

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

// Neither stomp.py nor go-stomp can leave out the host on 1.2, nor can go-stomp on any version; stomp.py sends none on 1.0
// and 1.1. stomp.py cannot offer several versions at once; it says STOMP unless asked for CONNECT, but CONNECT on 1.0. The
// JavaScript clients know CONNECT only, and @stomp/stompjs sends no host by itself.
var variantsOf = map[string][]variant{
	"stomppy": {
		{Name: "1.0", Version: "1.0"},
		{Name: "1.0 login", Version: "1.0", Login: "ann", Passcode: "secret"},
		{Name: "1.1 STOMP without host", Version: "1.1"},
		{Name: "1.1 CONNECT", Version: "1.1", Command: "CONNECT", Host: "elsewhere.test"},
		{Name: "1.2 STOMP", Version: "1.2"},
		{Name: "1.2 CONNECT login", Version: "1.2", Command: "CONNECT", Login: "ann b.", Passcode: "sec:ret\\x", Host: "/"},
	},
	"gostomp": {
		{Name: "1.0", Version: "1.0"},
		{Name: "1.0 login", Version: "1.0", Login: "ann", Passcode: "secret"},
		{Name: "1.1", Version: "1.1", Host: "elsewhere.test"},
		{Name: "1.1 STOMP", Version: "1.1", Command: "STOMP"},
		{Name: "1.2 all versions offered"},
		{Name: "1.2 STOMP login", Version: "1.2", Command: "STOMP", Login: "ann b.", Passcode: "secret", Host: "/"},
	},
	"stompit":  javascriptVariants,
	"stompjs":  javascriptVariants,
	"chromium": javascriptVariants,
}

var javascriptVariants = []variant{
	{Name: "1.0", Version: "1.0"},
	{Name: "1.0 login", Version: "1.0", Login: "ann", Passcode: "secret"},
	{Name: "1.1 without host", Version: "1.1"},
	{Name: "1.1 with host", Version: "1.1", Host: "elsewhere.test"},
	{Name: "1.2 without host, all versions offered"},
	{Name: "1.2 login", Version: "1.2", Login: "ann b.", Passcode: "sec:ret\\x", Host: "/"},
}

func TestConnect(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	anonymous := regexp.MustCompile(`^stomp-[0-9a-f]{32}$`)
	for _, c := range clients {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			variants := variantsOf[c.String()]
			seen := c.start(t, srv, "connect", options{Variants: variants}).finish(t)
			for _, v := range variants {
				headers := seen.one(t, "connected", v.Name).Headers
				version := v.Name[:3]
				if got := headers["version"]; got != version {
					t.Errorf("%s: version is %q, want %q", v.Name, got, version)
				}
				if got := headers["server"]; !strings.HasPrefix(got, "natstomp/") {
					t.Errorf("%s: server is %q, want natstomp/...", v.Name, got)
				}
				if got, want := headers["durability"], "os"; got != want {
					t.Errorf("%s: durability is %q, want %q", v.Name, got, want)
				}
				if got, want := headers["x-max-body"], strconv.Itoa(4<<20); got != want {
					t.Errorf("%s: x-max-body is %q, want %q", v.Name, got, want)
				}
				beat, found := headers["heart-beat"]
				if version == "1.0" && found {
					t.Errorf("%s: heart-beat %q offered, 1.0 has none", v.Name, beat)
				} else if version != "1.0" && beat != "10000,10000" {
					t.Errorf("%s: heart-beat is %q, want 10000,10000", v.Name, beat)
				}
				session := headers["session"]
				switch v.Login {
				case "":
					if !anonymous.MatchString(session) {
						t.Errorf("%s: session is %q, want stomp-<32 hex>", v.Name, session)
					}
				case "ann b.":
					if session != "ann_b_" {
						t.Errorf("%s: session is %q, want ann_b_", v.Name, session)
					}
				default:
					if session != v.Login {
						t.Errorf("%s: session is %q, want %q", v.Name, session, v.Login)
					}
				}
				seen.one(t, "disconnected", v.Name)
				if slices.Contains(overWebSocket, c) {
					wantUpgrade(t, seen, v.Name, "v"+strings.Replace(version, ".", "", 1)+".stomp")
				}
			}
			if errs := seen.of("error", ""); len(errs) > 0 {
				t.Errorf("ERRORs came:\n%s", errs)
			}
		})
	}
}

func TestFanOut(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	const count = 1000
	for _, c := range clients {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			ch := channel(t)
			seen := c.start(t, srv, "fan_out", options{Channel: ch, Count: count}).finish(t)
			for _, version := range versions {
				messages := seen.of("message", "sub-"+version)
				wantBodies(t, messages, numbers(0, count))
				for _, m := range messages {
					if got, want := m.Headers["destination"], "/topic/"+ch; got != want {
						t.Fatalf("destination is %q, want %q", got, want)
					}
					if got, found := m.Headers["ack"]; found {
						t.Fatalf("an ack header %q on ack:auto", got)
					}
					if got, want := m.Headers["content-length"], strconv.Itoa(len(m.Body)); got != want {
						t.Fatalf("content-length is %q, want %q", got, want)
					}
				}
			}
		})
	}
}

// wantBodies compares the bodies of messages, in order.
func wantBodies(t *testing.T, messages events, want []string) {
	t.Helper()
	got := messages.bodies()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("message %d is %q, want %q; got %d, want %d messages:\n%s",
				i, got[i], want[i], len(got), len(want), messages)
			return
		}
	}
	t.Errorf("got %d messages, want %d: %.200q, want %.200q", len(got), len(want), got, want)
}

func TestBodies(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	octets := make([]byte, 256)
	for i := range octets {
		octets[i] = byte(i)
	}
	large := bytes.Repeat([]byte("\x00\n\r\x00MESSAGE\n\n\xff\xfe:\\c"), 1<<20/16)[:1<<20]
	bodies := [][]byte{octets, {}, large, []byte("\x00"), []byte("\n"), []byte("h\u00e9llo \u4e16\u754c")}
	each(t, versions, func(t *testing.T, c client, version string) {
		ch := channel(t)
		seen := c.start(t, srv, "bodies", options{Version: version, Channel: ch, Bodies: bodies}).finish(t)
		for _, prefix := range []string{"/topic/", "/queue/"} {
			var got [][]byte
			for _, m := range seen.of("message", "") {
				if m.Headers["destination"] != prefix+ch {
					continue
				}
				got = append(got, m.Body)
				if length := m.Headers["content-length"]; length != strconv.Itoa(len(m.Body)) {
					t.Errorf("content-length is %q for a body of %d", length, len(m.Body))
				}
				if kind := m.Headers["content-type"]; kind != "application/octet-stream" {
					t.Errorf("content-type is %q, want application/octet-stream", kind)
				}
			}
			if len(got) != len(bodies) {
				t.Fatalf("%d messages on %s, want %d", len(got), prefix+ch, len(bodies))
			}
			for i, want := range bodies {
				if !bytes.Equal(got[i], want) {
					t.Errorf("%s body %d: %d octets with SHA-256 %x, want %d with %x",
						prefix, i, len(got[i]), sha256.Sum256(got[i]), len(want), sha256.Sum256(want))
				}
			}
		}
	})
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, versions, func(t *testing.T, c client, version string) {
		seen := c.start(t, srv, "receipts", options{Version: version, Channel: channel(t)}).finish(t)
		var asked, got []string
		for _, e := range seen.of("asked", "client") {
			asked = append(asked, e.Text)
		}
		for _, e := range seen.of("receipt", "client") {
			got = append(got, e.Headers["receipt-id"])
		}
		if len(asked) < 11 {
			t.Fatalf("only %d receipts asked for: %q", len(asked), asked)
		}
		if !slices.Equal(got, asked) {
			t.Errorf("receipts are\n%q, want, in this order,\n%q", got, asked)
		}
		seen.one(t, "disconnected", "client")
	})
}

func TestLiveAfterReceipt(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	const count = 50
	each(t, []string{"1.2"}, func(t *testing.T, c client, version string) {
		seen := c.start(t, srv, "live", options{Version: version, Channel: channel(t), Count: count}).finish(t)
		wantBodies(t, seen.of("message", "subscriber"), numbers(0, count))
	})
}

func TestHeartBeat(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, "--limits-heartbeat", "1s")
	const idle = 5000
	running := make(map[string]*session)
	for _, c := range clients {
		for _, version := range versions {
			name := c.String() + "/" + version
			running[name] = c.start(t, srv, "heart_beat",
				options{Version: version, Channel: channel(t, name), IdleMS: idle})
		}
	}
	for name, s := range running {
		t.Run(name, func(t *testing.T) {
			seen := s.finish(t)
			offered, found := seen.one(t, "connected", "client").Headers["heart-beat"]
			beats := seen.one(t, "idled", "client").Headers
			in, errIn := strconv.Atoi(beats["in"])
			out, errOut := strconv.Atoi(beats["out"])
			if errIn != nil || errOut != nil {
				t.Fatalf("no counts: %v", beats)
			}
			if strings.HasSuffix(name, "1.0") {
				if found || in != 0 {
					t.Errorf("heart-beat %q and %d beats on 1.0, want none", offered, in)
				}
			} else {
				if offered != "1000,1000" {
					t.Errorf("heart-beat is %q, want 1000,1000", offered)
				}
				// Ours is due when nothing was written for half a second; theirs each second, for go-stomp 0.7 s.
				if in < 5 || in > 14 {
					t.Errorf("%d beats from the server in %d ms, want about 10", in, idle)
				}
				if out < 3 {
					t.Errorf("%d beats from the client in %d ms, want 4 or more", out, idle)
				}
			}
			wantBodies(t, seen.of("message", "client"), []string{"still here"})
		})
	}
}
