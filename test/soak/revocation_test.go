package soak_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	// revoked and kept are the sessions that lose their right and those that do not, each with a subscription.
	revoked, kept = 2_500 / slowness, 2_500 / slowness
	// watched are those of the latter to which messages flow all the time.
	watched = 50
	// revokedWithin is how long a session may go on without its right.
	revokedWithin = 3 * time.Second * slowness
	// tokenSecret signs the tokens of this test.
	tokenSecret = "0123456789abcdef0123456789abcdef"

	bothPolicy = "p, *, events, lost.>, read, allow\np, *, queues, held, *, allow\np, *, events, kept.>, *, allow\n"
	keptPolicy = "p, role:owner, queues, held, *, allow\np, *, events, kept.>, *, allow\n"
)

// TestRevocation takes rights from half of 5,000 live sessions: by a new policy, by the end of their tokens, by an
// operator. They end within a second, what they held is with somebody else, and the others see nothing.
func TestRevocation(t *testing.T) {
	r := newRevocation(t)
	others := r.open(t, kept, "kept", time.Hour)
	finish := r.watch(t, others[:watched])
	t.Run("policy", func(t *testing.T) { r.byPolicy(t) })
	t.Run("expiry", func(t *testing.T) { r.byExpiry(t) })
	t.Run("operator", func(t *testing.T) { r.byOperator(t) })
	finish()
	writer := r.connect(t, "writer", time.Hour)
	for i, c := range others {
		writer.DoFrame(rig.Send(fmt.Sprintf("/topic/kept/%d", i), []byte("still there")))
		if f, err := c.Expect("MESSAGE", rig.Patience); err != nil || string(f.Body) != "still there" {
			t.Fatalf("session %d that kept its right: got %s, %v", i, f, err)
		}
	}
}

// revocation is a server with tokens and a policy.
type revocation struct {
	srv    *testserver.Server
	policy string
}

func newRevocation(t *testing.T) *revocation {
	t.Helper()
	r := &revocation{policy: filepath.Join(t.TempDir(), "policy.csv")}
	r.load(t, bothPolicy)
	config := filepath.Join(t.TempDir(), "natstomp.yaml")
	text := "auth: {mode: jwt, jwt: {hmac_secret: " + tokenSecret + ", leeway: 0s}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.srv = testserver.Start(t, "--config", config, "--authz-policy", r.policy, "--nats-embedded-listen", "off", "--log-level", "warn")
	return r
}

// watch sends messages to sessions that keep their right, one after the other all the time, until finish: each gets its
// own in their order and soon, and nothing else.
func (r *revocation) watch(t *testing.T, conns []*rig.Client) (finish func()) {
	t.Helper()
	writer := r.connect(t, "watcher", time.Hour)
	var team crew
	stop := make(chan struct{})
	sent := make([]atomic.Int64, len(conns))
	var longest atomic.Int64
	team.launch(func() error {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i = (i + 1) % len(conns) {
			select {
			case <-tick.C:
			case <-stop:
				for i := range conns { // The last of each ends its reader.
					if err := writer.Send(rig.Send(fmt.Sprintf("/topic/kept/%d", i), []byte("end"))); err != nil {
						return err
					}
				}
				return nil
			}
			body := fmt.Sprintf("%d %d", sent[i].Add(1), time.Now().UnixNano())
			if err := writer.Send(rig.Send(fmt.Sprintf("/topic/kept/%d", i), []byte(body))); err != nil {
				return err
			}
		}
	})
	for i, c := range conns {
		team.launch(func() error {
			for n := int64(1); ; n++ {
				f, err := c.Read(rig.Patience)
				switch {
				case err != nil || f.Command != "MESSAGE":
					return unexpected(f, err, "a message of a session that keeps its right")
				case string(f.Body) == "end" && n == sent[i].Load()+1:
					return nil
				}
				var number, at int64
				if _, err := fmt.Sscan(string(f.Body), &number, &at); err != nil || number != n {
					return fmt.Errorf("session %d got %q, want message %d", i, f.Body, n)
				}
				for took := time.Now().UnixNano() - at; ; {
					if old := longest.Load(); took <= old || longest.CompareAndSwap(old, took) {
						break
					}
				}
			}
		})
	}
	return func() {
		close(stop)
		if err := team.wait(); err != nil {
			t.Fatal(err)
		}
		took := time.Duration(longest.Load())
		t.Logf("the longest way of a message to a session that keeps its right: %v", took)
		if took > revokedWithin {
			t.Errorf("a message to a session that keeps its right took %v, want at most %v", took, revokedWithin)
		}
	}
}

// load puts a policy in place, as an editor does.
func (r *revocation) load(t *testing.T, policy string) {
	t.Helper()
	if err := os.WriteFile(r.policy+".new", []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.policy+".new", r.policy); err != nil {
		t.Fatal(err)
	}
}

// connect opens a session with a token that is good for a while.
func (r *revocation) connect(t *testing.T, name string, life time.Duration, roles ...string) *rig.Client {
	t.Helper()
	claims := jwt.MapClaims{"sub": name, "exp": time.Now().Add(life).Unix(), "roles": roles}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(tokenSecret))
	if err != nil {
		t.Fatal(err)
	}
	return rig.Connect(t, r.srv.TCPAddr, "passcode", token)
}

// open opens sessions that each subscribe to a topic below first.
func (r *revocation) open(t *testing.T, n int, first string, life time.Duration) []*rig.Client {
	t.Helper()
	conns := make([]*rig.Client, n)
	for i := range conns {
		conns[i] = r.connect(t, fmt.Sprintf("%s-%d", first, i), life)
		conns[i].AskFrame(rig.Subscribe("s", fmt.Sprintf("/topic/%s/%d", first, i)))
	}
	return conns
}

// allEnded waits until all sessions have got an ERROR with that text and returns how long that took since begun.
func allEnded(t *testing.T, conns []*rig.Client, text string, begun time.Time) time.Duration {
	t.Helper()
	var team crew
	for _, c := range conns {
		team.launch(func() error {
			f, err := c.Read(rig.Patience)
			if err != nil || f.Command != "ERROR" || !strings.HasPrefix(f.Get("message"), text) {
				return unexpected(f, err, "the ERROR "+text)
			}
			return nil
		})
	}
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begun)
}

// inTime wants one of three rounds to be in time: what makes sessions outlive their right does so each time, other work on
// the machine does not.
func inTime(t *testing.T, round func() time.Duration) {
	t.Helper()
	for left := 3; ; left-- {
		took := round()
		t.Logf("%d sessions ended within %v", revoked, took)
		switch {
		case took <= revokedWithin:
			return
		case left == 1:
			t.Errorf("sessions ended %v after the loss of their right, want at most %v", took, revokedWithin)
			return
		}
	}
}

// byPolicy loads a policy that has the right no more. A consumer that held messages is among those that end.
func (r *revocation) byPolicy(t *testing.T) {
	owner := r.connect(t, "owner", time.Hour, "owner")
	inTime(t, func() time.Duration {
		conns := r.open(t, revoked-1, "lost", time.Hour)
		holder := r.connect(t, "holder", time.Hour)
		owner.AskFrame(rig.Send("/queue/held", []byte("held")))
		holder.AskFrame(rig.Subscribe("h", "/queue/held", "ack", "client"))
		holder.Next("MESSAGE")
		begun := time.Now()
		r.load(t, keptPolicy)
		took := allEnded(t, append(conns, holder), "access denied: no right to read /", begun)
		owner.AskFrame(rig.Subscribe("o", "/queue/held", "ack", "client"))
		f, err := owner.Expect("MESSAGE", revokedWithin)
		if err != nil {
			t.Fatalf("what the session held is not there at once: %v", err)
		}
		owner.AskFrame(stompclient.New("ACK", "id", f.Get("ack")))
		owner.AskFrame(stompclient.New("UNSUBSCRIBE", "id", "o"))
		r.load(t, bothPolicy)
		rig.Until(t, func() error {
			if got := scrape(t, r.srv, "natstomp_policy_rules"); got != strings.Count(bothPolicy, "\n") {
				return fmt.Errorf("%d rules are in force", got)
			}
			return nil
		})
		return took
	})
}

// byExpiry lets tokens end.
func (r *revocation) byExpiry(t *testing.T) {
	inTime(t, func() time.Duration {
		life := 4 * time.Second * slowness
		last := time.Now().Add(life).Truncate(time.Second)
		conns := make([]*rig.Client, revoked)
		for i := range conns {
			conns[i] = r.connect(t, fmt.Sprintf("lost-%d", i), time.Until(last)+time.Millisecond)
			conns[i].AskFrame(rig.Subscribe("s", fmt.Sprintf("/topic/lost/%d", i)))
		}
		if time.Now().After(last) {
			t.Fatal("the machine is too slow for this test: the tokens ended before all sessions were open")
		}
		took := allEnded(t, conns, "token expired", last)
		if took < 0 {
			t.Errorf("all sessions had ended %v before their tokens did", -took)
		}
		return took
	})
}

// byOperator ends each session by its ID.
func (r *revocation) byOperator(t *testing.T) {
	const some = 100
	conns := r.open(t, some, "lost", time.Hour)
	var answer struct {
		Data struct {
			Connections []struct {
				ID      string `json:"id"`
				Session string `json:"client_id"`
			} `json:"connections"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(rig.Fetch(t, "http://"+r.srv.AdminAddr+"/api/stomp/connections")), &answer); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for _, c := range answer.Data.Connections {
		if !strings.HasPrefix(c.Session, "lost-") {
			continue
		}
		request, err := http.NewRequest(http.MethodDelete, "http://"+r.srv.AdminAddr+"/api/v1/connections/"+c.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("ending a session: %s %s, %v", resp.Status, text, err)
		}
	}
	t.Logf("%d sessions ended within %v", some, allEnded(t, conns, "disconnected by an operator", begun))
}
