package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// message is what a STOMP frame and a NATS message have in common.
type message struct {
	command string
	headers []stompclient.Header
	body    []byte
}

// captures are the values that a match found, by name.
type captures map[string]string

// match compares got with the words and the body of the step, which are expanded. It returns what they capture.
func (r *runner) match(st step, got message) (captures, error) {
	found := captures{}
	words := st.words
	if got.command != "" {
		if words[0] != got.command {
			return nil, fmt.Errorf("command: got %s, want %s", got.command, words[0])
		}
		words = words[1:]
	}
	named := map[string]bool{}
	for _, w := range words {
		name, err := r.matchWord(w, got, found)
		if err != nil {
			return nil, err
		}
		named[name] = true
	}
	if named["*"] {
		for _, h := range got.headers {
			if !named[h.Name] {
				return nil, fmt.Errorf("header %q is not expected", h.Name+":"+h.Value)
			}
		}
	}
	return found, r.matchBody(st, got)
}

// matchWord compares one header and returns its name, or "*" for the word !*.
func (r *runner) matchWord(word string, got message, found captures) (string, error) {
	if strings.HasPrefix(word, "!") {
		name := r.expand(word[1:])
		if name == "*" {
			return name, nil
		}
		if v, there := lookup(got, name); there {
			return name, fmt.Errorf("header %q must not be there", name+":"+v)
		}
		return name, nil
	}
	name, want, ok := strings.Cut(word, ":")
	if !ok {
		return "", fmt.Errorf("script: %q is no header", word)
	}
	name = r.expand(strings.ReplaceAll(name, "%3A", ":"))
	value, there := lookup(got, name)
	if !there {
		return name, fmt.Errorf("header %q is missing", name)
	}
	return name, r.matchValue(name, want, value, found)
}

func (r *runner) matchValue(name, want, got string, found captures) error {
	switch {
	case want == "*":
		return nil
	case strings.HasPrefix(want, "=~"):
		re, err := regexp.Compile(r.expand(want[2:]))
		if err != nil {
			return fmt.Errorf("script: %w", err)
		}
		if !re.MatchString(got) {
			return fmt.Errorf("header %s: got %q, want a match of %q", name, got, re)
		}
		return nil
	case strings.HasPrefix(want, "~"):
		if part := r.expand(want[1:]); !contains(got, part) {
			return fmt.Errorf("header %s: got %q, want it to contain %q", name, got, part)
		}
		return nil
	case strings.HasPrefix(want, "$") && !strings.HasPrefix(want, "${"):
		known, ok := r.vars[want[1:]]
		if !ok {
			found[want[1:]] = got
			return nil
		}
		want = known
	default:
		want = r.expand(want)
	}
	if got != want {
		return fmt.Errorf("header %s: got %q, want %q", name, got, want)
	}
	return nil
}

func (r *runner) matchBody(st step, got message) error {
	body := string(got.body)
	switch want := r.expand(st.body); {
	case !st.hasBody && got.command == "ERROR", want == "*":
		return nil
	case strings.HasPrefix(want, "~"):
		if !contains(body, want[1:]) {
			return fmt.Errorf("body: got %.300q, want it to contain %.300q", body, want[1:])
		}
	case body != want:
		return fmt.Errorf("body: got %.300q, want %.300q", body, want)
	}
	return nil
}

func contains(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

func lookup(m message, name string) (string, bool) {
	return stompclient.Frame{Headers: m.headers}.Lookup(name)
}

// variable matches the innermost variables of a text: repetition, stream name, value.
var variable = regexp.MustCompile(`\$\{(?:([0-9]+)\*([^{}]*)|(stream:)?([^{}]+))\}`)

// expand replaces the variables in s. An unknown one fails the step.
func (r *runner) expand(s string) string {
	for strings.Contains(s, "${") {
		done := variable.ReplaceAllStringFunc(s, func(v string) string {
			m := variable.FindStringSubmatch(v)
			if m[1] != "" {
				n, _ := strconv.Atoi(m[1])
				return strings.Repeat(m[2], n)
			}
			if m[3] != "" {
				return rig.QueueStream(m[4])
			}
			if value, ok := r.vars[m[4]]; ok {
				return value
			}
			r.unknown = v
			return ""
		})
		if done == s {
			break
		}
		s = done
	}
	return s
}
