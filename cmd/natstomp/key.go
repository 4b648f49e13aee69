package main

import (
	"reflect"
	"strings"
	"time"

	"github.com/natstomp/natstomp/connector"
)

const envPrefix = "NATSTOMP_"

// key is one setting: a leaf of connector.Config.
type key struct {
	path   string       // As in the file: "limits.body".
	index  []int        // For reflect.Value.FieldByIndex on a connector.Config.
	typ    reflect.Type // Of the field.
	secret bool         // Its value is never shown and has no flag.
}

// configKeys returns the settings in the order of connector.Config.
func configKeys() []key {
	return appendKeys(nil, reflect.TypeFor[connector.Config](), "", nil)
}

func appendKeys(keys []key, t reflect.Type, prefix string, index []int) []key {
	for _, f := range fieldsOf(t) {
		path := prefix + f.name
		at := append(index[:len(index):len(index)], f.index)
		if isSection(f.typ) {
			keys = appendKeys(keys, f.typ, path+".", at)
			continue
		}
		keys = append(keys, key{path: path, index: at, typ: f.typ, secret: f.secret})
	}
	return keys
}

// field is one key of a section.
type field struct {
	name   string
	index  int
	typ    reflect.Type
	secret bool
}

// fieldsOf returns the keys of a section: the fields of the struct t that have a yaml name.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		secret := f.Tag.Get("secret") == "true" || f.Type == reflect.TypeFor[connector.Secret]()
		fields = append(fields, field{name, i, f.Type, secret})
	}
	return fields
}

// isSection reports whether t holds keys of its own.
func isSection(t reflect.Type) bool { return t.Kind() == reflect.Struct }

// isEntries reports whether t is a list of sections.
func isEntries(t reflect.Type) bool { return t.Kind() == reflect.Slice && isSection(t.Elem()) }

// isList reports whether t is a list of texts.
func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice && !isSection(t.Elem()) }

// env returns the environment variable of k.
func (k key) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// envFile returns the variable that names a file with the value of k; only secrets have one.
func (k key) envFile() string { return k.env() + "_FILE" }

// flag returns the name of the flag of k, without dashes in front.
func (k key) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.path) }

// hasFlag reports whether k can be given on a command line. Secrets cannot: other users of a machine can read those.
func (k key) hasFlag() bool { return !k.secret && !isEntries(k.typ) }

// of returns the field of c that k names.
func (k key) of(c *connector.Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(k.index)
}

// typeName says in one word what may be written for a setting of type t.
func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[connector.Size]():
		return "size"
	case isEntries(t):
		return "entries"
	case isList(t):
		return "list"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Int:
		return "number"
	}
	return "text"
}
