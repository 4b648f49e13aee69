package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/natstomp/natstomp/connector"
)

// fileLayer reads one configuration file. The YAML library's own decoder stops early and loses paths, so the tree of
// nodes is walked beside the structs here.
type fileLayer struct {
	name   string
	paths  []string          // Of all known keys, for hints.
	values map[string]any    // Checked values by path.
	lines  map[string]source // Places of all that was read, also inside entries.
	faults faults
}

// readFile reads the file of the given name, which is shown as it is in faults.
func readFile(name string, keys []key) *fileLayer {
	f := &fileLayer{name: name, values: map[string]any{}, lines: map[string]source{}}
	for _, k := range keys {
		f.paths = append(f.paths, k.path)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		f.fault(0, "", "", "cannot be read: "+reasonOf(err), "")
		return f
	}
	f.parse(string(text))
	return f
}

// reasonOf returns the cause of a file error without the path, which the fault shows itself.
func reasonOf(err error) string {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

func (f *fileLayer) fault(line int, path, value, reason, hint string) {
	f.faults = append(f.faults, fault{
		source: source{fromFile, f.name, line},
		Fault:  connector.Fault{Path: path, Value: value, Reason: reason, Hint: hint},
	})
}

func (f *fileLayer) parse(text string) {
	if line, reason := unreadable(text); reason != "" {
		f.fault(line, "", "", reason, "")
		return
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if !errors.Is(err, io.EOF) {
			f.syntax(text, err)
		}
		return // A file without a document leaves the defaults.
	}
	var ignored connector.Config
	f.section(document.Content[0], reflect.ValueOf(&ignored).Elem(), "", true)
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		f.syntax(text, err)
	default:
		f.fault(more.Line, "", "", "is a second YAML document", "keep one, without --- between its lines")
	}
}

// unreadable finds what makes a file no text, because the YAML library does not say where it is.
func unreadable(text string) (line int, reason string) {
	line = 1
	for i, r := range text {
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return line, "is not UTF-8 text"
		case r < ' ' && r != '\t' && r != '\r' || r == 0x7f:
			return line, fmt.Sprintf("holds the control character %U", r)
		}
	}
	return 0, ""
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax notes what the YAML library says about a file that it cannot read.
func (f *fileLayer) syntax(text string, err error) {
	reason, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine.FindStringSubmatch(reason); m != nil {
		reason = reason[len(m[0]):]
		line, _ = strconv.Atoi(m[1])
	}
	f.fault(syntaxLine(text, line), "", "", "is not YAML: "+reason, "")
}

// syntaxLine returns the line from which on text is no YAML. The library tells another one at times, or none, so the
// longest beginning that it reads is looked for. It is believed where that would take too long.
func syntaxLine(text string, told int) int {
	const most = 1500 // Lines; well below a second.
	lines := strings.SplitAfter(text, "\n")
	for n := len(lines) - 1; n > 0; n-- {
		if n < len(lines)-most {
			return told
		}
		if isYAML(strings.Join(lines[:n], "")) {
			return n + 1
		}
	}
	return 1
}

func isYAML(text string) bool {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// section reads a mapping into the struct v. The keys at the top of the configuration are kept as values; inside
// entries of a list the struct itself is.
func (f *fileLayer) section(n *yaml.Node, v reflect.Value, path string, keep bool) {
	line := n.Line
	n = resolved(n)
	f.lines[path] = source{fromFile, f.name, line}
	if isNull(n) {
		return // A section whose keys are all commented out.
	}
	if n.Kind != yaml.MappingNode {
		f.fault(line, path, "", "must hold keys, not "+nodeName(n), "")
		return
	}
	fields := fieldsOf(v.Type())
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := joined(path, name.Value)
		if earlier, ok := first[name.Value]; ok && name.Kind == yaml.ScalarNode {
			f.fault(name.Line, at, "", fmt.Sprintf("is given twice, first in line %d", earlier), "")
			f.faults[len(f.faults)-1].repeated = true
			continue
		}
		first[name.Value] = name.Line
		if fd, ok := f.known(name, at, fields); ok {
			f.setting(value, v.Field(fd.index), at, fd.secret, keep)
		}
	}
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// known finds the field of a key, or notes why there is none.
func (f *fileLayer) known(name *yaml.Node, at string, fields []field) (field, bool) {
	names := make([]string, len(fields))
	for i, fd := range fields {
		if name.Kind == yaml.ScalarNode && fd.name == name.Value {
			return fd, true
		}
		names[i] = fd.name
	}
	switch {
	case name.Kind != yaml.ScalarNode:
		f.fault(name.Line, strings.TrimSuffix(at, "."), "", "has a key that is "+nodeName(resolved(name)), "write the key itself")
	case name.Value == "<<":
		f.fault(name.Line, at, "", "is not supported", "write the keys out")
	default:
		hint := didYouMean(name.Value, names)
		if hint == "" {
			hint = keyElsewhere(name.Value, f.paths)
		}
		f.fault(name.Line, at, "", "is not a known key", hint)
	}
	return field{}, false
}

// setting reads the value of a key.
func (f *fileLayer) setting(n *yaml.Node, v reflect.Value, path string, secret, keep bool) {
	if isSection(v.Type()) {
		f.section(n, v, path, keep)
		return
	}
	good := false
	f.lines[path] = source{fromFile, f.name, n.Line}
	if v.Kind() == reflect.Slice {
		good = f.list(n, v, path, secret)
	} else {
		good = f.scalar(n, v, path, secret)
	}
	if good && keep {
		f.values[path] = v.Interface()
	}
}

// list reads a sequence into the slice v and reports whether it is one. What is wrong inside does not count: then the
// rest can still be checked, and the configuration is refused in any case.
func (f *fileLayer) list(n *yaml.Node, v reflect.Value, path string, secret bool) bool {
	line := n.Line
	n = resolved(n)
	if n.Kind != yaml.SequenceNode {
		f.fault(line, path, "", "must be a list, not "+nodeName(n), "write [] for an empty one")
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		f.setting(item, v.Index(i), at, secret, false)
	}
	return true
}

// scalar reads a single value into v and reports whether it is good.
func (f *fileLayer) scalar(n *yaml.Node, v reflect.Value, path string, secret bool) bool {
	line := n.Line
	n = resolved(n)
	switch {
	case isNull(n):
		f.fault(line, path, "", "has no value", noValueHint(v.Kind()))
		return false
	case n.Kind != yaml.ScalarNode:
		f.fault(line, path, "", "must be a single value, not "+nodeName(n), "")
		return false
	}
	switch n.Tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
	default:
		f.fault(line, path, "", "has the tag "+n.Tag+", which is not supported", "write the value alone")
		return false
	}
	if kind := v.Kind(); n.Tag == "!!str" && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 &&
		(kind == reflect.Bool || kind == reflect.Int) {
		f.fault(line, path, quoted(n.Value, secret), "is a text, and a "+typeName(v.Type())+" is wanted", "write it without quotes")
		return false
	}
	value, err := parseText(v.Type(), n.Value)
	if err != nil {
		f.fault(line, path, quoted(n.Value, secret), err.Error(), "")
		return false
	}
	v.Set(reflect.ValueOf(value))
	return true
}

func noValueHint(kind reflect.Kind) string {
	if kind == reflect.String {
		return `write "" for an empty text`
	}
	return "give it one, or remove the key"
}

// resolved follows an alias to what it names. Sections have no cycles, so neither has the walk.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// nodeName says what a node is, for faults. It shows no value: that may be a secret in the wrong place.
func nodeName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return "a single value"
}
