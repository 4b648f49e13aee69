package conformance_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/conformance"
	"github.com/natstomp/natstomp/test/testserver"
)

const head = "# STOMP 1.2: a test.\nversions: 1.2\n"

func TestParse(t *testing.T) {
	s, err := conformance.Parse("g/n", "# STOMP 1.2,\n# two lines.\nversions: 1.0 1.1\nflags: --a b\nalone\n\na connect\n"+
		"[1.1] a> SEND \"x:y z\" | \"b\\x00\"\nrepeat 2\n\ta<[1s,2s] MESSAGE\nend\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Doc, "STOMP 1.2, two lines."; got != want {
		t.Errorf("doc: got %q, want %q", got, want)
	}
	if got, want := strings.Join(s.Versions, " "), "1.0 1.1"; got != want {
		t.Errorf("versions: got %q, want %q", got, want)
	}
	if got, want := strings.Join(s.Flags, " "), "--a b"; got != want || !s.Alone {
		t.Errorf("flags: got %q, %v, want %q, true", got, s.Alone, want)
	}
}

func TestParseErrors(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no comment":       {"versions: 1.2\na connect\n", "comment"},
		"no version":       {"# STOMP 1.2\na connect\n", "versions"},
		"unknown version":  {"# STOMP 1.2\nversions: 1.3\n", "1.3"},
		"unknown step":     {head + "foo bar\n", "n.txt:3: unknown step"},
		"unknown verb":     {head + "a foo\n", "unknown step"},
		"open repeat":      {head + "repeat 2\na connect\n", "without end"},
		"stray end":        {head + "end\n", "unknown step"},
		"bad quote":        {head + `a> SEND "x` + "\n", "word"},
		"bad body":         {head + `a> SEND | "x` + "\n", "body"},
		"bad only":         {head + "[1.4] a connect\n", "1.4"},
		"bad range":        {head + "a<[1x,2s] MESSAGE\n", "unit"},
		"too few words":    {head + "a>\n", "needs 1 words"},
		"too few of other": {head + "nats sub n\n", "needs 3 words"},
	}
	for name, tt := range tests {
		if _, err := conformance.Parse("n", tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to contain %q", name, err, tt.want)
		}
	}
}

// fake is a server that answers each frame it reads with the next of the answers and closes behind the last.
func fake(t *testing.T, answers ...string) *testserver.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		br := bufio.NewReader(c)
		for _, a := range answers {
			if _, err := br.ReadString(0); err != nil {
				break
			}
			_, _ = io.WriteString(c, a) // The run may have failed and gone.
		}
		_ = c.Close()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return &testserver.Server{TCPAddr: l.Addr().String()}
}

const (
	connected = "CONNECTED\nversion:1.2\n\n\x00\n"
	bye       = "RECEIPT\nreceipt-id:end-of-script\n\n\x00\n"
	msg       = "MESSAGE\ndestination:/topic/a\nmessage-id:1\nsubscription:s\nack:1\nx:a\\cb\ncontent-length:2\n\nhi\x00\n"
	fault     = "ERROR\nmessage:bad x\ncontent-type:text/plain;charset=utf-8\ncontent-length:5\n\nbad x\x00\n"
)

func TestRunPasses(t *testing.T) {
	tests := map[string]struct {
		steps   string
		answers []string
	}{
		"nothing":    {"a connect", []string{connected, bye}},
		"message":    {"a connect\na> SEND\na< MESSAGE destination:~TOPIC x:a:b !y message-id:$m | hi\na> ACK @m", []string{connected, msg, "", bye}},
		"pattern":    {"a connect\na> SEND\na< MESSAGE x:=~^a.b$ destination:* message-id:1 subscription:s ack:1 content-length:2 !* | ~h", []string{connected, msg, bye}},
		"error":      {"a connect\na> SEND\na< ERROR message:~bad", []string{connected, fault}},
		"any order":  {"a connect\na> SEND\na<any RECEIPT receipt-id:1\na<any MESSAGE | hi", []string{connected, msg + "RECEIPT\nreceipt-id:1\n\n\x00\n", bye}},
		"skip":       {"a connect\na> SEND\na<skip MESSAGE\na< RECEIPT receipt-id:1", []string{connected, msg + "RECEIPT\nreceipt-id:1\n\n\x00\n", bye}},
		"other":      {"a connect\n[1.1] a< MESSAGE\na<none 10ms", []string{connected, bye}},
		"end":        {"a connect\na> SEND\na<end [0s,9s]", []string{connected, fault}},
		"close":      {"a connect\na> SEND\na<close", []string{connected, ""}},
		"repeat":     {"a connect\na> SEND\nrepeat 2\na< RECEIPT receipt-id:${i}\nend", []string{connected, "RECEIPT\nreceipt-id:0\n\n\x00\nRECEIPT\nreceipt-id:1\n\n\x00\n", bye}},
		"repetition": {"a connect\na> SEND\na< RECEIPT receipt-id:${3*ab}", []string{connected, "RECEIPT\nreceipt-id:ababab\n\n\x00\n", bye}},
		"beats":      {"a connect heart-beat:0,1\na> SEND\na<beat", []string{connected, "\n", bye}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := conformance.Parse("n", head+tt.steps+"\n")
			if err != nil {
				t.Fatal(err)
			}
			if err := conformance.Run(conformance.Env{Server: fake(t, tt.answers...)}, s, "1.2"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunFails(t *testing.T) {
	receipt := "RECEIPT\nreceipt-id:1\n\n\x00\n"
	answer := func(a string) []string { return []string{connected, a, bye} }
	tests := map[string]struct {
		steps   string
		answers []string
		want    string
	}{
		"wrong version":      {"a connect 1.1", answer(""), "want CONNECTED with version:1.1"},
		"stray frame at end": {"a connect\na> SEND", answer(msg), "does not expect"},
		"not closed":         {"a connect\na> SEND\na< ERROR", answer(fault + receipt), "instead of the end"},
		"wrong command":      {"a connect\na> SEND\na< ERROR", answer(receipt), "command: got RECEIPT, want ERROR"},
		"wrong value":        {"a connect\na> SEND\na< MESSAGE x:y | hi", answer(msg), `n.txt:5: a< MESSAGE`},
		"missing header":     {"a connect\na> SEND\na< MESSAGE y:* | hi", answer(msg), `"y" is missing`},
		"present header":     {"a connect\na> SEND\na< MESSAGE !x | hi", answer(msg), `"x:a:b" must not be there`},
		"other headers":      {"a connect\na> SEND\na< MESSAGE x:* !* | hi", answer(msg), `is not expected`},
		"wrong body":         {"a connect\na> SEND\na< MESSAGE", answer(msg), `body: got "hi", want ""`},
		"wrong part":         {"a connect\na> SEND\na< MESSAGE | ~hu", answer(msg), `contain "hu"`},
		"no match":           {"a connect\na> SEND\na< MESSAGE x:=~^b | hi", answer(msg), `want a match`},
		"captured value":     {"a connect\na> SEND\na< RECEIPT receipt-id:$v\na< MESSAGE x:$v | hi", answer(receipt + msg), `want "1"`},
		"any order":          {"a connect\na> SEND\na<any RECEIPT receipt-id:1\na<any MESSAGE | hi", answer(msg + fault), "matches none of 1"},
		"unknown variable":   {"a connect\na> SEND x:${v}", answer(""), "unknown variable ${v}"},
		"unknown capture":    {"a connect\na> ACK @m", answer(""), "captured as m"},
		"unknown connection": {"b> SEND", answer(""), "no connection b"},
		"id twice":           {"a connect\na> SEND\nrepeat 2\na< MESSAGE | hi\nend", answer(msg + msg), "for the second time"},
		"too early":          {"a connect\na> SEND\na<[5s,9s] MESSAGE | hi", answer(msg), "between 5s and 9s"},
		"silence broken":     {"a connect\na> SEND\na<none 5s", answer(msg), "want nothing"},
		"end in silence":     {"a connect\na> SEND\na<none 5s", []string{connected, ""}, "not even the end"},
		"beat in silence":    {"a connect heart-beat:0,0\na> SEND\na<none 50ms", answer("\n"), "1 heart-beats, want nothing"},
		"beat unasked":       {"a connect\na> SEND\na< RECEIPT receipt-id:1", answer("\n" + receipt), "no heart-beats"},
		"closed early":       {"a connect\na> SEND\na< RECEIPT", []string{connected, ""}, "EOF"},
		"frame before close": {"a connect\na> SEND\na<close", []string{connected, receipt}, "instead of the end"},
		"ack differs":        {"a connect\na> SEND\na< MESSAGE | hi", answer(strings.Replace(msg, "ack:1", "ack:2", 1)), "differs from message-id"},
		"no message-id":      {"a connect\na> SEND\na< MESSAGE | hi", answer(strings.Replace(msg, "message-id:1\n", "", 1)), "without message-id"},
		"ERROR without text": {"a connect\na> SEND\na< ERROR", []string{connected, strings.Replace(fault, "message:bad x", "message:bad y", 1)}, "the same text"},
		"ERROR type":         {"a connect\na> SEND\na<end", []string{connected, strings.Replace(fault, ";charset=utf-8", "", 1)}, "content-type"},
		"RECEIPT with more":  {"a connect\na> SEND\na< RECEIPT", answer("RECEIPT\nreceipt-id:1\nx:y\n\n\x00\n"), `header "x" on a RECEIPT`},
		"server not alone":   {"server kill", answer(""), "alone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := conformance.Parse("n", head+tt.steps+"\n")
			if err != nil {
				t.Fatal(err)
			}
			err = conformance.Run(conformance.Env{Server: fake(t, tt.answers...)}, s, "1.2")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to contain %q", err, tt.want)
			}
		})
	}
}

func TestRewrite(t *testing.T) {
	s, err := conformance.Parse("n", head+"a connect\na> SEND\n  a< MESSAGE x:* destination:/topic/b !ack y:1 | ho\n")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	env := conformance.Env{Server: fake(t, connected, msg, bye), Rewrite: func(line int, text string) {
		if line != 4 {
			t.Errorf("line: got %d, want 4", line)
		}
		got = text
	}}
	if err := conformance.Run(env, s, "1.2"); err != nil {
		t.Error(err)
	}
	if want := "  a< MESSAGE x:* destination:/topic/a ack:1 !y | hi"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
