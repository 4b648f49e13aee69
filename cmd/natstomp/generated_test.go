package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// TestGenerated compares meanings_gen.go and docs/configuration.md with what the comments of the configuration structs
// and their defaults make of them. With -update it rewrites both.
func TestGenerated(t *testing.T) {
	all := documentedKeys(t)
	for name, want := range map[string][]byte{
		"meanings_gen.go": meaningsSource(t, all),
		filepath.Join("..", "..", "docs", "configuration.md"): reference(t, all),
	} {
		if *update {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v; go generate ./cmd/natstomp makes it", err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale; go generate ./cmd/natstomp rewrites it\ngot  %q\nwant %q", name, firstChange(got, want), firstChange(want, got))
		}
	}
}

// firstChange returns the first line of a that is not the same in b.
func firstChange(a, b []byte) string {
	linesB := strings.Split(string(b), "\n")
	for i, line := range strings.Split(string(a), "\n") {
		if i >= len(linesB) || line != linesB[i] {
			return line
		}
	}
	return ""
}

// documentedKey is a setting with the comment of its field. Settings inside entries have a path with [].
type documentedKey struct {
	key
	meaning string
	inEntry bool
	section bool // A list of entries: its own keys follow.
}

func documentedKeys(t *testing.T) []documentedKey {
	t.Helper()
	comments := map[string]map[string]string{}
	var all []documentedKey
	var walk func(typ reflect.Type, prefix string, index []int, inEntry bool)
	walk = func(typ reflect.Type, prefix string, index []int, inEntry bool) {
		for _, f := range fieldsOf(typ) {
			name := typ.Field(f.index).Name
			at := append(slices.Clone(index), f.index)
			if isSection(f.typ) {
				walk(f.typ, prefix+f.name+".", at, inEntry)
				continue
			}
			if comments[typ.PkgPath()] == nil {
				comments[typ.PkgPath()] = fieldComments(t, typ.PkgPath())
			}
			comment := comments[typ.PkgPath()][typ.Name()+"."+name]
			if comment == "" {
				t.Errorf("%s.%s has no comment", typ, name)
			}
			all = append(all, documentedKey{
				key:     key{path: prefix + f.name, index: at, typ: f.typ, secret: f.secret},
				meaning: meaningOf(name, comment),
				inEntry: inEntry,
				section: isEntries(f.typ),
			})
			if isEntries(f.typ) {
				walk(f.typ.Elem(), prefix+f.name+"[].", nil, true)
			}
		}
	}
	walk(reflect.TypeFor[connector.Config](), "", nil, false)
	return all
}

// fieldComments returns the comments of the struct fields of one of our packages as "Type.Field".
func fieldComments(t *testing.T, pkgPath string) map[string]string {
	t.Helper()
	const module = "github.com/natstomp/natstomp/"
	dir := filepath.Join("..", "..", filepath.FromSlash(strings.TrimPrefix(pkgPath, module)))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of %s: %v", pkgPath, err)
	}
	comments := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
					}
				}
			}
			return false
		})
	}
	return comments
}

// meaningOf turns the comment of a field into a sentence of its own: without the field's name in front and without the
// default, which is shown apart, unless the comment says what the default means.
func meaningOf(name, comment string) string {
	text := strings.TrimPrefix(comment, name+" ")
	for _, verb := range []string{"is ", "are ", "says "} {
		text = strings.TrimPrefix(text, verb)
	}
	if i := strings.LastIndex(text, "Default "); i >= 0 {
		value := text[i+len("Default "):]
		text = text[:i]
		if strings.Contains(value, ": ") {
			text += upperFirst(value)
		}
	}
	return upperFirst(strings.TrimSpace(text))
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func meaningsSource(t *testing.T, all []documentedKey) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("// Code generated from the comments of connector.Config by go generate. DO NOT EDIT.\n\npackage main\n\n")
	b.WriteString("// meanings says what each setting is for.\nvar meanings = map[string]string{\n")
	for _, k := range all {
		if !k.inEntry {
			fmt.Fprintf(&b, "\t%q: %q,\n", k.path, k.meaning)
		}
	}
	b.WriteString("}\n")
	source, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// reference returns docs/configuration.md.
func reference(t *testing.T, all []documentedKey) []byte {
	t.Helper()
	head, err := os.ReadFile(filepath.Join("testdata", "docs", "head.md"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.Write(head)
	writeAliases(&b)
	b.WriteString("\n## Keys\n")
	defaults := connector.DefaultConfig()
	slices.SortStableFunc(all, func(a, b documentedKey) int { return cmp.Compare(topFirst(a.path), topFirst(b.path)) })
	section := "-"
	for _, k := range all {
		if first := sectionName(k.path); first != section {
			section = first
			writeHeading(&b, section)
		}
		writeRow(&b, k, &defaults)
	}
	return b.Bytes()
}

// sectionName returns the first part of a path, or "" for a key at the top.
func sectionName(path string) string {
	first, _, nested := strings.Cut(path, ".")
	if !nested {
		return ""
	}
	return first
}

// topFirst sorts the keys at the top before the others.
func topFirst(path string) int {
	if sectionName(path) == "" {
		return 0
	}
	return 1
}

func writeHeading(b *bytes.Buffer, section string) {
	title := "`" + section + "`"
	if section == "" {
		title = "At the top"
	}
	fmt.Fprintf(b, "\n### %s\n\n| key | type | default | variable | flag | meaning |\n|---|---|---|---|---|---|\n", title)
}

func writeRow(b *bytes.Buffer, k documentedKey, defaults *connector.Config) {
	initial, variable, option := "", "file only", "file only"
	if !k.inEntry && !k.section {
		initial = cell(formatValue(k.of(defaults)))
		variable = cell(k.env())
		option = "none: secret"
		if k.hasFlag() {
			option = cell("--" + k.flag())
		}
	}
	if k.secret {
		variable += "<br>" + cell(k.envFile())
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", cell(k.path), typeName(k.typ), initial, variable, option, prose(k.meaning))
}

// cell returns s as code in a table, and nothing for nothing.
func cell(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}

// prose returns s as text in a table.
func prose(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(s)
}

func writeAliases(b *bytes.Buffer) {
	b.WriteString("\n| variable of KubeMQ | key here |\n|---|---|\n")
	known := aliases()
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		meaning := "no effect: " + prose(known[name].reason)
		if path := known[name].path; path != "" {
			meaning = cell(path)
		}
		fmt.Fprintf(b, "| %s | %s |\n", cell(kubeMQPrefix+name), meaning)
	}
}
