package main

import (
	"reflect"
	"strings"

	"github.com/knadh/koanf/providers/posflag"
	"github.com/spf13/pflag"

	"github.com/natstomp/natstomp/connector"
)

// shortFlags are further names of flags, as the nats command line tool has them.
func shortFlags() map[string]string {
	return map[string]string{"context": "nats-context", "creds": "nats-creds"} //nolint:gosec // Names, no credentials.
}

// settingFlag is the flag of a setting. It keeps what was written: whether that is good is found out with the faults
// of the file and the environment, so that all are reported at once.
type settingFlag struct {
	key     key
	initial string
	text    string
	given   bool
	read    bool // By loadFlags, which meets a flag again under its short name.
}

var _ pflag.Value = (*settingFlag)(nil)

// String returns what was written, or the default.
func (f *settingFlag) String() string {
	if f == nil || !f.given {
		return ""
	}
	return f.text
}

// Set keeps text. A list may be given in several parts.
func (f *settingFlag) Set(text string) error {
	if f.given && isList(f.key.typ) {
		text = f.text + "," + text
	}
	f.text, f.given = text, true
	return nil
}

// Type returns the word that help shows for the value.
func (f *settingFlag) Type() string { return typeName(f.key.typ) }

// addSettingFlags adds a flag for each setting that may have one.
func addSettingFlags(flags *pflag.FlagSet) {
	defaults := connector.DefaultConfig()
	for _, k := range configKeys() {
		if !k.hasFlag() {
			continue
		}
		v := &settingFlag{key: k, initial: formatValue(k.of(&defaults))}
		f := flags.VarPF(v, k.flag(), "", usage(k, v.initial))
		if k.typ.Kind() == reflect.Bool {
			f.NoOptDefVal = "true"
		}
		for short, long := range shortFlags() {
			if long == k.flag() {
				flags.Var(v, short, "the same as --"+long)
			}
		}
	}
}

// usage is the help text of a setting's flag.
func usage(k key, initial string) string {
	text := strings.TrimSuffix(meanings[k.path], ".")
	if initial != "" && initial != "false" {
		text += " (default " + initial + ")"
	}
	return text + " [$" + k.env() + "]"
}

// loadFlags merges the flags of the command line.
func (l *loader) loadFlags() error {
	return l.layers.Load(posflag.ProviderWithFlag(l.flags, ".", nil, func(f *pflag.Flag) (string, any) {
		v, ok := f.Value.(*settingFlag)
		if !ok || !f.Changed || v.read {
			return "", nil
		}
		v.read = true
		s := source{rank: fromFlag, name: "--" + f.Name}
		value, err := parseText(v.key.typ, v.text)
		if err != nil {
			l.fault(s, v.key.path, quoted(v.text, false), err.Error(), "")
			return "", nil
		}
		l.setSource(v.key.path, s)
		return v.key.path, value
	}), nil)
}
