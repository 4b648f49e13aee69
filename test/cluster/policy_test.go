package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// pushedWithin is how long a pushed policy may take to be in force on all nodes: a second, and what a busy machine adds.
const pushedWithin = 10 * time.Second

const (
	openPolicy   = "p, *, events, app.>, *, allow\np, *, queues, >, *, allow\n"
	closedPolicy = "p, root, events, app.>, *, allow\n"
)

// policyNodes are two nodes that take their policy from the bucket of one NATS.
type policyNodes struct {
	t     *testing.T
	n     *natsServer
	url   string
	nodes [2]*testserver.Server
}

// newPolicyNodes starts a NATS with these users, and two nodes that are one of them.
func newPolicyNodes(t *testing.T, users string) *policyNodes {
	t.Helper()
	p := &policyNodes{t: t, n: single(t, users)}
	p.url = "nats://stomp:secret@127.0.0.1:" + strconv.Itoa(p.n.port)
	for i := range p.nodes {
		p.nodes[i] = testserver.StartEarly(t, "--nats-url", p.url, "--authz-kv")
	}
	return p
}

// push runs natstomp policy push with a policy and returns what it says.
func (p *policyNodes) push(policy string) (string, error) {
	p.t.Helper()
	program, err := testserver.Binary()
	if err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(p.t.TempDir(), "policy.csv")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		p.t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "policies.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^\$ natstomp (policy push .*) nats://n1\.example:4222$`).FindSubmatch(page)
	if shown == nil {
		p.t.Fatal("docs/policies.md does not show the command")
	}
	cmd := exec.Command(program, append(strings.Fields(string(shown[1])), p.url)...)
	cmd.Dir = filepath.Dir(file)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// inForce waits until both nodes have so many rules in force.
func (p *policyNodes) inForce(rules int) {
	p.t.Helper()
	for _, node := range p.nodes {
		rig.Until(p.t, func() error {
			if got, want := rig.Metric(p.t, node.AdminAddr, "natstomp_policy_rules"), fmt.Sprint(rules); got != want {
				return fmt.Errorf("%s rules are in force, want %s", got, want)
			}
			return nil
		})
	}
}

// ready waits until a node's readiness says what begins so.
func ready(t *testing.T, node *testserver.Server, want string) {
	t.Helper()
	rig.Until(t, func() error {
		got, err := node.Readiness()
		if err == nil && !strings.Contains(got, want) {
			err = fmt.Errorf("readiness is %q, want %q", got, want)
		}
		return err
	})
}

// TestPolicyPush starts two nodes with an empty bucket, pushes policies that reach both, and broken ones that the command
// and the nodes refuse, also while NATS is away and after that (FR-121).
func TestPolicyPush(t *testing.T) {
	t.Parallel()
	p := newPolicyNodes(t, documentedUsers(t))
	for _, node := range p.nodes {
		ready(t, node, "there is no policy yet")
		_, err := rig.Open(node.TCPAddr)
		if err == nil || !strings.Contains(err.Error(), "there is no policy yet, try again later") {
			t.Errorf("CONNECT without a policy: got %v, want an ERROR", err)
		}
	}
	if out, err := p.push("p, *, events, app.>, raed, allow\n"); err == nil || !strings.Contains(out, `policy.csv:1: action "raed" is not one of`) {
		t.Fatalf("pushing a broken policy: got %q, %v", out, err)
	}
	ready(t, p.nodes[0], "there is no policy yet")

	if out, err := p.push(openPolicy); err != nil || out != "policy.csv is pushed: revision 1\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	p.inForce(2)
	sessions := make([]*rig.Client, len(p.nodes))
	for i, node := range p.nodes {
		ready(t, node, "ok")
		sessions[i] = rig.Connect(t, node.TCPAddr)
		sessions[i].AskFrame(rig.Subscribe("s", "/topic/app/x"))
	}

	// By other means a broken policy gets into the bucket; the nodes refuse it, say so and keep what they have.
	_, js := native(t, "nats://admin:secret@127.0.0.1:"+strconv.Itoa(p.n.port))
	kv, err := js.KeyValue(t.Context(), "natstomp_policy")
	if err != nil {
		t.Fatal(err)
	}
	for i, broken := range []string{"p, *, events, app.>, *, alow\n", "", "p, *\n"} {
		if _, err := kv.PutString(t.Context(), "policy.csv", broken); err != nil {
			t.Fatal(err)
		}
		for _, node := range p.nodes {
			rig.Until(t, func() error {
				text := rig.Fetch(t, "http://"+node.AdminAddr+"/metrics")
				if want := fmt.Sprintf("natstomp_policy_reloads_total{result=\"refused\"} %d\n", i+1); !strings.Contains(text, want) ||
					!strings.Contains(text, "natstomp_settings_refused 1\n") {
					return fmt.Errorf("the metrics do not say %s", want)
				}
				return nil
			})
			ready(t, node, "policy refused, the one before stays: natstomp_policy, revision ")
		}
	}
	p.stillThere(sessions)
	if err := kv.Delete(t.Context(), "policy.csv"); err != nil {
		t.Fatal(err)
	}
	ready(t, p.nodes[1], "the policy was deleted")
	p.stillThere(sessions)

	// A push takes the right away, on both nodes, within a second.
	begun := time.Now()
	if out, err := p.push(closedPolicy); err != nil {
		t.Fatalf("got %q, %v", out, err)
	}
	pushed := time.Now()
	for _, c := range sessions {
		c.Refused("access denied: ")
	}
	if took := time.Since(pushed); took > pushedWithin {
		t.Errorf("a push took %v to reach both nodes, and the command itself %v", took, pushed.Sub(begun))
	}
	for _, node := range p.nodes {
		ready(t, node, "ok")
	}
	p.away(js)
}

// stillThere says that sessions have what they subscribed to, and nothing else.
func (p *policyNodes) stillThere(sessions []*rig.Client) {
	p.t.Helper()
	for i, node := range p.nodes {
		rig.Connect(p.t, node.TCPAddr).AskFrame(rig.Send("/topic/app/x", fmt.Sprint(i)))
		for _, c := range sessions {
			if f := c.Any(); f.Command != "MESSAGE" || string(f.Body) != fmt.Sprint(i) {
				p.t.Fatalf("got %s, want message %d", f, i)
			}
		}
	}
}

// away stops NATS: the policy in force stays. What is pushed when it is back reaches both nodes.
func (p *policyNodes) away(js jetstream.JetStream) {
	t := p.t
	root := make([]*rig.Client, len(p.nodes))
	for i, node := range p.nodes {
		root[i] = rig.Connect(t, node.TCPAddr, "login", "root")
		root[i].AskFrame(rig.Subscribe("s", "/topic/app/x"))
	}
	p.n.stop()
	if out, err := p.push("p, nobody, events, x, *, allow\n"); err == nil {
		t.Errorf("pushing to a NATS that is away: got %q, want an error", out)
	}
	p.n.start(t)
	for _, node := range p.nodes {
		ready(t, node, "ok")
	}
	for _, c := range root {
		c.AskFrame(stompclient.New("BEGIN", "transaction", "t")) // It was kept, with its subscription.
	}
	if out, err := p.push("p, nobody, events, x, *, allow\np, nobody, events, y, *, allow\np, nobody, events, z, *, allow\n"); err != nil {
		t.Fatalf("got %q, %v", out, err)
	}
	p.inForce(3)
	for _, c := range root {
		c.Refused("access denied: ")
	}
	rig.Until(t, func() error {
		kv, err := js.KeyValue(t.Context(), "natstomp_policy")
		if err != nil {
			return err
		}
		_, err = kv.Get(t.Context(), "policy.csv")
		return err
	})
}

// TestPolicyPushNeedsItsRight takes the right to write the bucket from natstomp's user, who serves without it.
func TestPolicyPushNeedsItsRight(t *testing.T) {
	t.Parallel()
	rights := documentedUsers(t)
	without := regexp.MustCompile(`(?m)^ *"\$KV\.natstomp_policy\.policy\.csv".*\n`).ReplaceAllString(rights, "")
	if without == rights {
		t.Fatal("the documentation has no such right")
	}
	p := newPolicyNodes(t, without)
	ready(t, p.nodes[0], "there is no policy yet")
	if out, err := p.push(closedPolicy); err == nil || !strings.Contains(out, "natstomp_policy") {
		t.Errorf("pushing without the right: got %q, %v, want an error", out, err)
	}
	_, js := native(t, "nats://admin:secret@127.0.0.1:"+strconv.Itoa(p.n.port))
	kv, err := js.KeyValue(t.Context(), "natstomp_policy")
	if err == nil {
		_, err = kv.PutString(t.Context(), "policy.csv", closedPolicy)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.inForce(1)
}
