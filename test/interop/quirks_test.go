package interop_test

import "strings"

// headerQuirks is what a library makes of headers that it should pass on as they are.
type headerQuirks struct {
	// carries reports whether its publisher of that version can write the header at all.
	carries func(version string, h pair) bool
	// written is the header as the server has to read it.
	written func(version string, h pair) pair
	// reports is what a client of that version says of a header that the server has sent to it.
	reports func(version string, h pair) pair
}

var quirks = map[string]headerQuirks{
	"stomppy": {
		carries: func(version string, h pair) bool { // It never escapes names, and on 1.0 nothing.
			return !strings.Contains(h[0], ":") && (version != "1.0" || !strings.Contains(h[1], "\n"))
		},
		written: asItIs,
		reports: unescapedOn10,
	},
	"gostomp": {
		carries: func(version string, h pair) bool { // It escapes as on 1.2, but \r is no escape on 1.1.
			return version != "1.1" || !strings.Contains(h[0]+h[1], "\r")
		},
		written: func(version string, h pair) pair {
			if version == "1.0" { // It escapes on 1.0 too, where a backslash is a backslash.
				return pair{escape.Replace(h[0]), escape.Replace(h[1])}
			}
			return h
		},
		reports: unescapedOn10,
	},
	"stompit": {
		carries: func(version string, h pair) bool {
			return version != "1.0" || !strings.Contains(h[0], ":") && !strings.Contains(h[0]+h[1], "\n")
		},
		written: asItIs,
		reports: asItIs,
	},
	"stompjs":  stompJSQuirks,
	"chromium": stompJSQuirks,
	"stompjs2": ancestorQuirks,
	"webstomp": ancestorQuirks,
}

// @stomp/stompjs escapes and unescapes values only, and on 1.2 only.
var stompJSQuirks = headerQuirks{
	carries: func(version string, h pair) bool {
		switch version {
		case "1.0":
			return !strings.Contains(h[0], ":") && !strings.Contains(h[1], "\n")
		case "1.1":
			return !strings.Contains(h[0], ":") && !strings.ContainsAny(h[1], "\n\\")
		default:
			return !strings.Contains(h[0], ":")
		}
	},
	written: asItIs,
	reports: func(version string, h pair) pair {
		if version == "1.0" {
			return pair{h[0], strings.TrimSpace(h[1])}
		}
		name, value := escape.Replace(h[0]), strings.TrimSpace(escape.Replace(h[1]))
		if version == "1.2" {
			// One after the other, so that of an escaped backslash and an n it makes a newline.
			for _, e := range []pair{{`\r`, "\r"}, {`\n`, "\n"}, {`\c`, ":"}, {`\\`, `\`}} {
				value = strings.ReplaceAll(value, e[0], e[1])
			}
		}
		return pair{name, value}
	},
}

// stompjs 2 and webstomp-client escape and unescape nothing.
var ancestorQuirks = headerQuirks{
	carries: func(_ string, h pair) bool {
		return !strings.Contains(h[0], ":") && !strings.ContainsAny(h[0]+h[1], "\n\\")
	},
	written: asItIs,
	reports: func(version string, h pair) pair {
		if version != "1.0" {
			h = pair{escape.Replace(h[0]), escape.Replace(h[1])}
		}
		return pair{h[0], strings.TrimSpace(h[1])}
	},
}

var (
	escape   = strings.NewReplacer(`\`, `\\`, "\r", `\r`, "\n", `\n`, ":", `\c`)
	unescape = strings.NewReplacer(`\\`, `\`, `\r`, "\r", `\n`, "\n", `\c`, ":")
)

func asItIs(_ string, h pair) pair { return h }

// unescapedOn10 is of a client that unescapes on 1.0, where nothing was escaped.
func unescapedOn10(version string, h pair) pair {
	if version == "1.0" {
		return pair{unescape.Replace(h[0]), unescape.Replace(h[1])}
	}
	return h
}

// canCarry reports whether a client's publisher of that version can write the header at all.
func canCarry(c client, version string, h pair) bool {
	return quirks[c.String()].carries(version, h)
}

// arrives is a header, sent by one client, as another one reports it; false: the receiver's version cannot represent it.
func arrives(from client, sent string, to client, received string, h pair) (pair, bool) {
	h = quirks[from.String()].written(sent, h)
	switch {
	case received == "1.0" && (strings.ContainsAny(h[0]+h[1], "\r\n") || strings.Contains(h[0], ":")):
		return pair{}, false
	case received == "1.1" && strings.Contains(h[0]+h[1], "\r"):
		return pair{}, false
	}
	return quirks[to.String()].reports(received, h), true
}
