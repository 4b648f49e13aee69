package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/natstomp/natstomp/connector"
)

// The sources of faults, in the order in which their faults are shown.
const (
	fromFile = iota
	fromEnv
	fromFlag
	fromNowhere
)

// source says where a value comes from.
type source struct {
	rank int
	name string // The file, the variable or the flag.
	line int    // In the file; 0 if it has none.
}

// String returns the source as faults begin: "natstomp.yaml:12", "NATSTOMP_LIMITS_BODY" or "--limits-body".
func (s source) String() string {
	if s.line > 0 {
		return fmt.Sprintf("%s:%d", s.name, s.line)
	}
	return s.name
}

// fault is one thing that is wrong with the configuration. Path may be empty.
type fault struct {
	source source
	connector.Fault
	repeated bool // The value is given twice; the first one was read.
}

// Error returns the fault on one line: source, path, value, reason, hint, as far as they are there.
func (f fault) Error() string {
	text := f.Fault.Error()
	if f.Path == "" {
		text = strings.TrimPrefix(text, ": ")
	}
	if f.source.name == "" {
		return text
	}
	return f.source.String() + ": " + text
}

// faults are all that is wrong with the configuration.
type faults []fault

// Error returns the faults, one on each line.
func (f faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// sort orders faults by their place: those of the file by line, then those of variables, of flags and of nothing.
func (f faults) sort() {
	slices.SortStableFunc(f, func(a, b fault) int {
		return cmp.Or(
			cmp.Compare(a.source.rank, b.source.rank),
			cmp.Compare(a.source.line, b.source.line),
			cmp.Compare(a.source.name, b.source.name),
		)
	})
}

// concern reports whether a fault is already known of path, of what it is in or of what is in it. What could not be
// read has its default or nothing, and to complain of that too would mislead.
func (f faults) concern(path string) bool {
	return slices.ContainsFunc(f, func(known fault) bool {
		if known.Path == "" || known.repeated {
			return false
		}
		return known.Path == path || inside(path, known.Path) || inside(known.Path, path) ||
			entryOf(path) != "" && entryOf(path) == entryOf(known.Path)
	})
}

// entryOf returns the entry of a list that a path is in, such as "queues.settings[0]", or "".
func entryOf(path string) string {
	entry, _, _ := strings.Cut(path, "].")
	if entry == path {
		return ""
	}
	return entry + "]"
}

// inside reports whether a path is below another one.
func inside(path, outer string) bool {
	return len(path) > len(outer) && strings.HasPrefix(path, outer) && (path[len(outer)] == '.' || path[len(outer)] == '[')
}

// quoted returns a value as faults show it: quoted, cut where it is long, and nothing at all if it is secret.
func quoted(text string, secret bool) string {
	const most = 80
	if secret {
		return ""
	}
	if len(text) > most {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}
