package authz

import "strings"

// circles finds roles that are given, over some others, to themselves.
func (t *text) circles() {
	w := walk{given: make(map[string][]link), state: make(map[string]uint8)}
	for _, l := range t.links {
		w.given[l.member] = append(w.given[l.member], l)
	}
	for _, l := range t.links {
		if w.state[l.member] == 0 {
			w.visit(t, l.member)
		}
	}
}

// walk goes through all roles once.
type walk struct {
	given map[string][]link
	state map[string]uint8 // 0 not seen, onPath, done.
	path  []string
}

const (
	onPath uint8 = iota + 1
	done
)

func (w *walk) visit(t *text, name string) {
	w.state[name] = onPath
	w.path = append(w.path, name)
	for _, l := range w.given[name] {
		switch w.state[l.role] {
		case 0:
			w.visit(t, l.role)
		case onPath:
			t.fault(l.line, "makes a circle of roles: %s", w.circle(l.role))
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.state[name] = done
}

// circle shows the end of the path from a name on, back to it.
func (w *walk) circle(name string) string {
	const most = 5
	begin := len(w.path) - 1
	for w.path[begin] != name {
		begin--
	}
	around := w.path[begin:]
	if len(around) > most {
		around = append(append([]string{}, around[:most]...), "...")
	}
	return strings.Join(append(append([]string{}, around...), name), " > ")
}
