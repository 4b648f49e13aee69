package conformance

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/testserver"
)

// patience is how long an expected thing may take, on a busy machine with the race detector on. It is below the ack wait
// of JetStream, 30 s.
const patience = 20 * time.Second

// Env is what a script runs against.
type Env struct {
	// Server is the program under test. Only a script that has it alone may stop it.
	Server *testserver.Server
	// WebSocket makes the script run over WebSocket instead of TCP.
	WebSocket bool
	// Unique makes ${id} differ between runs of one script against one store. May be empty.
	Unique string
	// Rewrite, if not nil, is called with the line (counted from 0) of each expectation that failed and the text that
	// would have passed, and the run goes on.
	Rewrite func(line int, text string)
}

// runner is one run of one script in one version.
type runner struct {
	env     Env
	script  *Script
	version string
	vars    map[string]string
	unknown string // A variable that expand did not know.
	acks    map[string]held
	clients []*client
	began   time.Time // Before the last step that sent or closed something.
	mark    time.Time // After it.

	nc   *nats.Conn
	subs map[string]*nats.Subscription
}

// held is what settles a captured message.
type held struct{ id, subscription string }

// Run runs the script in one version and returns the first failure, with its line.
func Run(env Env, s *Script, version string) error {
	r := &runner{
		env: env, script: s, version: version,
		vars: map[string]string{"version": version, "id": runID(s.Name, version, env.Unique)},
		acks: map[string]held{},
		subs: map[string]*nats.Subscription{},
	}
	defer r.release()
	if err := r.run(s.steps); err != nil {
		return err
	}
	return r.finish()
}

var notToken = regexp.MustCompile(`[^a-z0-9]+`)

// runID makes a token of a name: "ack/client-one" in 1.2 is "ack-client-one-v12".
func runID(name, version, unique string) string {
	return notToken.ReplaceAllString(name, "-") + "-v" + strings.ReplaceAll(version, ".", "") + unique
}

// release closes whatever is still open.
func (r *runner) release() {
	for _, c := range r.clients {
		_ = c.Close() // It may be closed.
	}
	if r.nc != nil {
		r.nc.Close()
	}
}

// finish ends the connections that are still open; nothing may be waiting on them.
func (r *runner) finish() error {
	for _, c := range r.clients {
		if err := c.finish(); err != nil {
			return fmt.Errorf("%s.txt: end of connection %s: %w", r.script.Name, c.name, err)
		}
	}
	return nil
}

func (r *runner) run(steps []step) error {
	for i := 0; i < len(steps); i++ {
		st := steps[i]
		if !r.applies(st) {
			continue
		}
		group := []step{st}
		for st.verb == "<any" && i+1 < len(steps) && steps[i+1].verb == "<any" && steps[i+1].conn == st.conn {
			i++
			if r.applies(steps[i]) {
				group = append(group, steps[i])
			}
		}
		err := r.step(group)
		if err == nil && r.unknown != "" {
			err = fmt.Errorf("script: unknown variable %s", r.unknown)
		}
		if err != nil {
			var inner *stepError
			if errors.As(err, &inner) {
				return err
			}
			return &stepError{r.script, st.line, err}
		}
	}
	return nil
}

func (r *runner) applies(st step) bool { return st.only == nil || slices.Contains(st.only, r.version) }

// stepError adds the place to an error.
type stepError struct {
	script *Script
	line   int
	err    error
}

func (e *stepError) Error() string {
	return fmt.Sprintf("%s.txt:%d: %s\n\t%v", e.script.Name, e.line+1, strings.TrimSpace(e.script.lines[e.line]), e.err)
}

func (e *stepError) Unwrap() error { return e.err }

// step runs one step, or a group of <any.
func (r *runner) step(group []step) error {
	st := group[0]
	if st.conn != "" {
		return r.connStep(group)
	}
	switch st.verb {
	case "repeat":
		return r.repeat(st)
	case "wait":
		d, err := time.ParseDuration(st.words[0])
		time.Sleep(d) // The script is about time.
		return err
	case "server":
		return r.serverStep(st.words[0])
	default:
		return r.nativeStep(st)
	}
}

func (r *runner) repeat(st step) error {
	n, err := strconv.Atoi(st.words[0])
	if err != nil {
		return err
	}
	for i := range n {
		r.vars["i"] = strconv.Itoa(i)
		if err := r.run(st.block); err != nil {
			return fmt.Errorf("round %d of a repeat: %w", i, err)
		}
	}
	return nil
}

func (r *runner) serverStep(what string) error {
	if !r.script.Alone {
		return errors.New("script: a server step needs a server alone")
	}
	r.began = time.Now()
	r.mark = r.began
	if r.nc != nil && what != "term" {
		r.nc.Close()
		r.nc = nil
	}
	switch what {
	case "term":
		return r.env.Server.Terminate()
	case "kill":
		r.env.Server.Kill()
		return r.env.Server.Restart()
	case "restart":
		if err := r.env.Server.Stop(); err != nil {
			return err
		}
		return r.env.Server.Restart()
	case "stop":
		return r.env.Server.Stop()
	case "start":
		return r.env.Server.Restart()
	default:
		return fmt.Errorf("script: unknown server step %q", what)
	}
}
