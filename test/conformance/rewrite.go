package conformance

import (
	"strconv"
	"strings"
)

// rewritten returns the line of an expectation as it would have matched got: what matched stays as it is written.
func (r *runner) rewritten(st step, got message) string {
	line := r.script.lines[st.line]
	head := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if st.only != nil {
		head += "[" + strings.Join(st.only, " ") + "] "
	}
	head += st.conn + st.verb
	if st.max != 0 {
		head += "[" + st.min.String() + "," + st.max.String() + "]"
	}
	words := []string{head, got.command}
	for _, w := range st.words[1:] {
		words = append(words, r.rewrittenWord(w, got))
	}
	out := strings.Join(words, " ")
	switch {
	case r.matchBody(st, got) == nil:
		if _, body, found := strings.Cut(line, " | "); found {
			out += " | " + body
		}
	case len(got.body) > 0:
		out += " | " + quoteBody(r.collapse(string(got.body)))
	}
	return out
}

func (r *runner) rewrittenWord(word string, got message) string {
	if _, err := r.matchWord(word, got, captures{}); err == nil {
		return quoteWord(word)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "!"), ":")
	value, there := lookup(got, r.expand(strings.ReplaceAll(name, "%3A", ":")))
	if !there {
		return quoteWord("!" + name)
	}
	return quoteWord(name + ":" + r.collapse(value))
}

// collapse puts the run's id back as a variable.
func (r *runner) collapse(s string) string {
	return strings.ReplaceAll(s, r.vars["id"], "${id}")
}

func quoteWord(w string) string {
	if q := strconv.Quote(w); w == "" || strings.ContainsAny(w, " |") || q != `"`+w+`"` {
		return q
	}
	return w
}

func quoteBody(b string) string {
	if q := strconv.Quote(b); strings.TrimSpace(b) != b || q != `"`+b+`"` {
		return q
	}
	return b
}
