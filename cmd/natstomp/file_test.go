package main

import (
	"slices"
	"strings"
	"testing"
)

func TestFileFaults(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"empty", " ", nil},
		{"comments", "# nothing\n", nil},
		{"one document", "---\nlimits: {id: 5}\n...\n", nil},
		{"empty section", "limits:\n  # id: 5\nlog:\n", nil},
		{"byte order mark", "\ufefflimits: {id: 5}\n", nil},
		{"alias", "limits: {id: &n 5, headers: *n}\nlisteners: {tcp: &l {optional: true}, admin: *l}\n", nil},
		{"text that looks like something else", "nats: {domain: 12, replicas: 3}\nauth: {jwt: {issuer: yes, audience: 2001-01-01}}\n", nil},
		{"groups of digits", "limits: {connections: 10_000}\n", nil},
		{"zero without unit", "limits: {heartbeat: 0}\nstore: {max_bytes: 0}\n", nil},
		{"off", "nats: {embedded: {listen: off}}\nlisteners: {admin: {address: off}}\n", nil},

		{"list at the top", "- a\n", []string{"file:1: must hold keys, not a list"}},
		{"text at the top", "natstomp\n", []string{"file:1: must hold keys, not a single value"}},
		{"second document", "log: {level: info}\n---\nlog: {level: warn}\n", []string{"file:2: is a second YAML document (keep one, without --- between its lines)"}},
		{"empty second document", "log: {level: info}\n---\n", []string{"file:2: is a second YAML document (keep one, without --- between its lines)"}},
		{"unknown at the top", "limit: {}\n", []string{"file:1: limit: is not a known key (did you mean limits?)"}},
		{"unknown and like nothing", "zebra: 1\n", []string{"file:1: zebra: is not a known key"}},
		{"swapped letters", "limits: {bdoy: 1MiB}\n", []string{"file:1: limits.bdoy: is not a known key (did you mean body?)"}},
		{"capitals", "Limits: {}\n", []string{"file:1: Limits: is not a known key (did you mean limits?)"}},
		{"in the wrong section", "nats:\n  store_dir: x\n", []string{"file:2: nats.store_dir: is not a known key (did you mean nats.embedded.store_dir?)"}},
		{"merge key", "limits: {<<: {id: 5}}\n", []string{"file:1: limits.<<: is not supported (write the keys out)"}},
		{"list as key", "limits: {[id]: 5}\n", []string{"file:1: limits: has a key that is a list (write the key itself)"}},
		{"key twice", "log:\n  level: info\n  format: text\n  level: warn\n", []string{"file:4: log.level: is given twice, first in line 2"}},
		{"section twice", "log: {}\nrpc: {}\nlog: {}\n", []string{"file:3: log: is given twice, first in line 1"}},
		{"value for section", "limits: 5\n", []string{"file:1: limits: must hold keys, not a single value"}},
		{"list for section", "limits: [5]\n", []string{"file:1: limits: must hold keys, not a list"}},
		{"list for value", "limits: {id: [5]}\n", []string{"file:1: limits.id: must be a single value, not a list"}},
		{"keys for value", "log: {level: {a: b}}\n", []string{"file:1: log.level: must be a single value, not keys"}},
		{"value for list", "queues: {declare: a}\n", []string{"file:1: queues.declare: must be a list, not a single value (write [] for an empty one)"}},
		{"nothing for list", "queues: {declare: }\n", []string{"file:1: queues.declare: must be a list, not nothing (write [] for an empty one)"}},
		{"list in list", "queues: {declare: [a, [b]]}\n", []string{"file:1: queues.declare[1]: must be a single value, not a list"}},
		{"nothing in list", "queues: {declare: [a, ~]}\n", []string{"file:1: queues.declare[1]: has no value (write \"\" for an empty text)"}},
		{"nothing for text", "log: {level: }\n", []string{"file:1: log.level: has no value (write \"\" for an empty text)"}},
		{"nothing for number", "limits: {id: null}\n", []string{"file:1: limits.id: has no value (give it one, or remove the key)"}},
		{"text for number", "limits: {id: many}\n", []string{`file:1: limits.id: "many" is no whole number`}},
		{"quoted number", "limits: {id: '5'}\n", []string{`file:1: limits.id: "5" is a text, and a number is wanted (write it without quotes)`}},
		{"fraction", "limits: {id: 5.5}\n", []string{`file:1: limits.id: "5.5" is no whole number`}},
		{"octal number", "limits: {id: 010}\n", []string{`file:1: limits.id: "010" is no whole number`}},
		{"hexadecimal number", "limits: {id: 0x10}\n", []string{`file:1: limits.id: "0x10" is no whole number`}},
		{"huge number", "limits: {id: 99999999999999999999}\n", []string{`file:1: limits.id: "99999999999999999999" is a larger number than fits`}},
		{"yes for bool", "allow_insecure: yes\n", []string{`file:1: allow_insecure: "yes" is neither true nor false`}},
		{"quoted bool", "allow_insecure: \"true\"\n", []string{`file:1: allow_insecure: "true" is a text, and a bool is wanted (write it without quotes)`}},
		{"number for bool", "allow_insecure: 1\n", []string{`file:1: allow_insecure: "1" is neither true nor false`}},
		{"duration without unit", "limits: {write_stall: 10}\n", []string{`file:1: limits.write_stall: "10" has no unit: write for instance 500ms, 10s or 1h30m`}},
		{"duration in days", "store: {max_age: 7d}\n", []string{`file:1: store.max_age: "7d" is no duration: write for instance 500ms, 10s or 1h30m`}},
		{"size without unit", "limits: {body: 1024}\n", []string{`file:1: limits.body: "1024" has no unit: write B, KiB, MiB or GiB behind the number`}},
		{"own tag", "log: {level: !mine info}\n", []string{"file:1: log.level: has the tag !mine, which is not supported (write the value alone)"}},
		{"binary", "log: {level: !!binary aW5mbw==}\n", []string{"file:1: log.level: has the tag !!binary, which is not supported (write the value alone)"}},
		{"endless alias", "queues: {declare: &a [*a]}\n", []string{"file:1: queues.declare[0]: must be a single value, not a list"}},
		{"endless section", "limits: &a {id: *a}\n", []string{"file:1: limits.id: must be a single value, not keys"}},

		{"no YAML in the first line", "log: level: info\n", []string{"file:1: is not YAML: mapping values are not allowed in this context"}},
		{"no YAML in a later line", "log:\n  level: info\n a: b\n", []string{"file:3: is not YAML: did not find expected key"}},
		{"bracket", "log: {}\nlimits: [1\nrpc: {}\n", []string{"file:2: is not YAML: did not find expected ',' or ']'"}},
		{"quote", "log: {}\nrpc: {}\nnats: {url: 'x}\n", []string{"file:3: is not YAML: found unexpected end of stream"}},
		{"tab", "log:\n\tlevel: info\n", []string{"file:2: is not YAML: found character that cannot start any token"}},
		{"unknown alias", "log: {}\nlimits: *other\n", []string{"file:2: is not YAML: unknown anchor 'other' referenced"}},
		{"control character", "log: {}\nlimits: \x01\n", []string{"file:2: holds the control character U+0001"}},
		{"no UTF-8", "log: {}\n\nlimits: \xff\n", []string{"file:3: is not UTF-8 text"}},
		{"UTF-16", "\xff\xfel\x00", []string{"file:1: is not UTF-8 text"}},
		{"no YAML in the second document", "log: {}\n---\na: [\n", []string{"file:3: is not YAML: did not find expected node content"}},
	} {
		if got := faultLines(t, setting{file: test.file}); !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestFileFaultsShowNoSecrets(t *testing.T) {
	got := strings.Join(faultLines(t, setting{file: `
nats:
  password: [canary-1]
  token: {canary-2: x}
  passwrd: canary-3
  token: canary-4
  embedded: {users: [canary-5, [canary-6], "a:canary-7", "a:canary-8"]}
auth: {jwt: {hmac_secret: canary-9}}
`}), "\n")
	if strings.Contains(strings.ReplaceAll(got, "canary-2", ""), "canary") {
		t.Errorf("shows a secret:\n%s", got)
	}
	if n := strings.Count(got, "\n") + 1; n < 7 {
		t.Errorf("got %d faults, want at least 7:\n%s", n, got)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("limits: {id: &n 5, headers: *n}\n")
	f.Add("queues: {settings: [{queue: a, max_age: 1h}], declare: &a [*a]}\n")
	f.Add("? [a]\n: {<<: *x}\n---\n- ~\n")
	keys := configKeys()
	f.Fuzz(func(t *testing.T, text string) {
		name := writeFile(t, text)
		layer := readFile(name, keys)
		for _, x := range layer.faults {
			if x.source.line < 1 || x.source.line > strings.Count(text, "\n")+strings.Count(text, "\r")+2 && !strings.ContainsAny(text, "\u0085\u2028\u2029") {
				t.Errorf("%q: fault in line %d: %v", text, x.source.line, x)
			}
		}
	})
}
