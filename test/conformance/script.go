package conformance

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Script is one parsed script. It is not changed by a run, so runs may share it.
type Script struct {
	// Name is the path below the root without its extension, for example "ack/client-cumulative".
	Name string
	// Doc is the comment at the head, which names the clause.
	Doc string
	// Versions are the STOMP versions that it runs in.
	Versions []string
	// Flags are extra arguments of the server. Alone asks for a server of its own per run.
	Flags []string
	Alone bool
	// File is the text of the server's configuration file; empty: none.
	File string
	// TCPOnly says that the script needs what only a TCP connection has, such as closing one direction.
	TCPOnly bool

	lines []string
	steps []step
}

// step is one line.
type step struct {
	line     int // Counted from 0.
	only     []string
	conn     string // The connection, "" for steps of others.
	verb     string // As written, without the connection: ">", "<any", "connect", "nats>", ...
	min, max time.Duration
	words    []string
	body     string
	hasBody  bool
	block    []step // Of repeat.
}

var versions = []string{"1.0", "1.1", "1.2"}

// Load parses all scripts below the root of fsys, ordered by name.
func Load(fsys fs.FS) ([]*Script, error) {
	var scripts []*Script
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".txt" {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		s, err := Parse(strings.TrimSuffix(name, ".txt"), string(text))
		scripts = append(scripts, s)
		return err
	})
	return scripts, err
}

// Parse parses one script. Errors name the line.
func Parse(name, text string) (*Script, error) {
	s := &Script{Name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	n := 0
	for ; n < len(s.lines); n++ {
		done, err := s.setting(strings.TrimSpace(s.lines[n]))
		if err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", name, n+1, err)
		}
		if done {
			break
		}
	}
	if s.Doc == "" || len(s.Versions) == 0 {
		return nil, fmt.Errorf("%s.txt: a comment with the clause and a versions line must come first", name)
	}
	p := parser{lines: s.lines, next: n}
	var err error
	if s.steps, err = p.block(false); err != nil {
		return nil, fmt.Errorf("%s.txt:%d: %w", name, p.next, err)
	}
	return s, nil
}

// setting takes one line of the head and reports whether the head ended before it.
func (s *Script) setting(line string) (done bool, err error) {
	switch {
	case strings.HasPrefix(line, "#"):
		s.Doc = strings.TrimSpace(s.Doc + " " + strings.TrimSpace(line[1:]))
	case strings.HasPrefix(line, "versions:"):
		s.Versions = strings.Fields(line[len("versions:"):])
		return false, checkVersions(s.Versions)
	case strings.HasPrefix(line, "flags:"):
		s.Flags = strings.Fields(line[len("flags:"):])
	case strings.HasPrefix(line, "file:"):
		s.File += strings.TrimPrefix(line[len("file:"):], " ") + "\n"
	case line == "alone":
		s.Alone = true
	case line == "tcp only":
		s.TCPOnly = true
	default:
		return line != "", nil
	}
	return false, nil
}

func checkVersions(list []string) error {
	for _, v := range list {
		if !slices.Contains(versions, v) {
			return fmt.Errorf("unknown version %q", v)
		}
	}
	return nil
}

type parser struct {
	lines []string
	next  int
}

// block parses lines up to the end of the file or, in a repeat, to its end line.
func (p *parser) block(inner bool) ([]step, error) {
	var steps []step
	for p.next < len(p.lines) {
		line := strings.TrimSpace(p.lines[p.next])
		p.next++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if line == "end" && inner {
			return steps, nil
		}
		st, err := parseStep(line)
		if err != nil {
			return nil, err
		}
		st.line = p.next - 1
		if st.verb == "repeat" {
			if st.block, err = p.block(true); err != nil {
				return nil, err
			}
		}
		steps = append(steps, st)
	}
	if inner {
		return nil, fmt.Errorf("repeat without end")
	}
	return steps, nil
}

var (
	onlyPart = regexp.MustCompile(`^\[([0-9. ]+)\]\s+`)
	// connVerb is a connection with one of the verbs that are written without a blank.
	connVerb  = regexp.MustCompile(`^([a-z][0-9]?)(>>|>1|>|<any|<skip|<none|<beat|<close|<end|<)$`)
	connName  = regexp.MustCompile(`^[a-z][0-9]?$`)
	rangePart = regexp.MustCompile(`^\[([0-9a-z.]*),([0-9a-z.]+)\]$`)
)

// arity is the least number of words behind each verb; connections have the second table.
var (
	arity     = map[string]int{"nats": 3, "nats>": 1, "nats<": 1, "nats<none": 1, "js>": 1, "js<": 1, "js": 2, "repeat": 1, "wait": 1, "server": 1}
	connArity = map[string]int{
		">": 1, ">>": 1, ">1": 1, "<": 1, "<any": 1, "<skip": 1, "<none": 1, "<beat": 0, "<close": 0, "<end": 0,
		"dial": 0, "connect": 0, "beat": 2, "half": 0, "drop": 0, "reset": 0,
	}
)

func parseStep(line string) (step, error) {
	var st step
	if m := onlyPart.FindStringSubmatch(line); m != nil {
		st.only = strings.Fields(m[1])
		if err := checkVersions(st.only); err != nil {
			return st, err
		}
		line = line[len(m[0]):]
	}
	words, body, hasBody, err := split(line)
	if err != nil {
		return st, err
	}
	st.body, st.hasBody = body, hasBody
	head := words[0]
	// A range may be written at the verb or behind it.
	if i := strings.IndexByte(head, '['); i > 0 {
		words = slices.Insert(words, 1, head[i:])
		head = head[:i]
	}
	words = words[1:]
	table := arity
	switch m := connVerb.FindStringSubmatch(head); {
	case m != nil:
		st.conn, st.verb, table = m[1], m[2], connArity
	case connName.MatchString(head) && len(words) > 0:
		st.conn, st.verb, words, table = head, words[0], words[1:], connArity
	default:
		st.verb = head
	}
	if strings.HasPrefix(st.verb, "<") && len(words) > 0 {
		if m := rangePart.FindStringSubmatch(words[0]); m != nil {
			if st.min, st.max, err = parseRange(m[1], m[2]); err != nil {
				return st, err
			}
			words = words[1:]
		}
	}
	least, known := table[st.verb]
	if !known {
		return st, fmt.Errorf("unknown step %q", line)
	}
	if len(words) < least {
		return st, fmt.Errorf("%q needs %d words", st.verb, least)
	}
	st.words = words
	return st, nil
}

func parseRange(low, high string) (lowest, highest time.Duration, err error) {
	if low != "" {
		if lowest, err = time.ParseDuration(low); err != nil {
			return 0, 0, err
		}
	}
	highest, err = time.ParseDuration(high)
	return lowest, highest, err
}

// split cuts a line into words and the body.
func split(line string) (words []string, body string, hasBody bool, err error) {
	rest := line
	for rest != "" {
		switch {
		case rest[0] == ' ':
			rest = rest[1:]
		case rest == "|" || strings.HasPrefix(rest, "| "):
			body = strings.TrimPrefix(rest[1:], " ")
			if strings.HasPrefix(body, `"`) {
				if body, err = strconv.Unquote(body); err != nil {
					return nil, "", false, fmt.Errorf("body: %w", err)
				}
			}
			return words, body, true, nil
		case rest[0] == '"':
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, "", false, fmt.Errorf("word %q: %w", rest, err)
			}
			word, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, "", false, err
			}
			words, rest = append(words, word), rest[len(quoted):]
		default:
			word, after, _ := strings.Cut(rest, " ")
			words, rest = append(words, word), after
		}
	}
	return words, "", false, nil
}
