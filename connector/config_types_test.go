package connector_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/natstomp/natstomp/connector"
)

func TestSizeText(t *testing.T) {
	for text, want := range map[string]connector.Size{
		"0":                    0,
		"0B":                   0,
		"0GiB":                 0,
		"1B":                   1,
		"1023B":                1023,
		"1KiB":                 1024,
		"1536B":                1536,
		"64KiB":                64 << 10,
		"4MiB":                 4 << 20,
		"1GiB":                 1 << 30,
		"1025MiB":              1025 << 20,
		"8589934591GiB":        8589934591 << 30,
		"9223372036854775807B": math.MaxInt64,
	} {
		var got connector.Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("UnmarshalText(%q): got %d, %v, want %d", text, got, err, want)
		}
		shortest, err := want.MarshalText()
		if err != nil {
			t.Errorf("MarshalText of %d: %v", want, err)
		}
		var again connector.Size
		if err := again.UnmarshalText(shortest); err != nil || again != want {
			t.Errorf("%d is written as %q, which is read as %d, %v", want, shortest, again, err)
		}
	}
}

func TestSizeShortestText(t *testing.T) {
	for size, want := range map[connector.Size]string{
		0:             "0",
		1:             "1B",
		1024:          "1KiB",
		1025:          "1025B",
		1536 << 10:    "1536KiB",
		16 << 20:      "16MiB",
		10 << 30:      "10GiB",
		math.MaxInt64: "9223372036854775807B",
		-1:            "-1B",
		math.MinInt64: "-8589934592GiB",
	} {
		if got := size.String(); got != want {
			t.Errorf("String of %d: got %q, want %q", int64(size), got, want)
		}
	}
}

func TestSizeRefusesOtherTexts(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "is no size",
		"KiB":                  "is no size",
		"many":                 "is no size",
		"+1KiB":                "is no size",
		" 1KiB":                "is no size",
		"64":                   "has no unit",
		"1":                    "has no unit",
		"5MB":                  `unknown unit "MB": use B, KiB, MiB or GiB`,
		"0MB":                  `unknown unit "MB"`,
		"5kB":                  `unknown unit "kB"`,
		"5GB":                  `unknown unit "GB"`,
		"5mib":                 `unknown unit "mib"`,
		"5K":                   `unknown unit "K"`,
		"1TiB":                 `unknown unit "TiB"`,
		"1KiB ":                `unknown unit "KiB "`,
		"4 MiB":                "space between number and unit",
		"1.5MiB":               "is no whole number",
		"1,5MiB":               "is no whole number",
		"-1B":                  "cannot be negative",
		"9223372036854775808B": "more octets than can be counted",
		"8589934592GiB":        "more octets than can be counted",
	} {
		size := connector.Size(7)
		err := size.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("UnmarshalText(%q): got error %v, want one with %q", text, err, want)
		}
		if size != 7 {
			t.Errorf("UnmarshalText(%q) changed the size to %d", text, size)
		}
	}
}

const canary = "canary-4711"

// exposing is a struct as a Config has them.
type exposing struct {
	Name string           `yaml:"name"`
	Key  connector.Secret `yaml:"key"`
}

func TestSecretIsNeverFormatted(t *testing.T) {
	s := connector.Secret(canary)
	in := exposing{Name: "n", Key: s}
	for _, verb := range []string{
		"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%T", "%t", "%e", "%g", "%c", "%U", "%o", "%b", "%20s", "%-20s", "%.3s",
	} {
		for name, value := range map[string]any{
			"value": s, "pointer": &s, "struct": in, "struct pointer": &in, "list": []connector.Secret{s},
			"map": map[string]connector.Secret{"k": s}, "any": []any{s},
		} {
			leaks(t, fmt.Sprintf(verb, value), name+" with "+verb)
		}
	}
	leaks(t, fmt.Sprint(s, in), "Sprint")
	leaks(t, fmt.Sprintln(&in), "Sprintln")
	leaks(t, s.String()+s.GoString(), "String and GoString")
	leaks(t, fmt.Errorf("bad key %v", s).Error(), "Errorf")
	if got, want := fmt.Sprintf("%s|%q|%d", s, s, s), "***|***|***"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecretIsNeverEncoded(t *testing.T) {
	in := exposing{Name: "n", Key: canary}
	for name, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "xml": xml.Marshal, "yaml": yaml.Marshal} {
		got, err := marshal(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		leaks(t, string(got), name)
		if !bytes.Contains(got, []byte("***")) {
			t.Errorf("%s: got %q, want *** in it", name, got)
		}
	}
}

func TestSecretIsNeverLogged(t *testing.T) {
	var out bytes.Buffer
	s := connector.Secret(canary)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler)
		log.Info("m", "key", s, "pointer", &s, "struct", exposing{Key: s}, "any", []any{s})
		log.With("key", s).WithGroup("g").Info("m", slog.Any("key", s))
	}
	leaks(t, out.String(), "slog")
	if !strings.Contains(out.String(), "***") {
		t.Errorf("got %q, want *** in it", out.String())
	}
}

func TestConfigHidesItsSecrets(t *testing.T) {
	c := connector.DefaultConfig()
	c.Auth.JWT.HMACSecret = canary
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		leaks(t, fmt.Sprintf(verb, c.Auth), "auth with "+verb)
	}
}

func TestSecretKeepsItsText(t *testing.T) {
	var s connector.Secret
	if err := s.UnmarshalText([]byte(canary)); err != nil {
		t.Fatal(err)
	}
	if got := s.Reveal(); got != canary {
		t.Errorf("Reveal: got %q, want %q", got, canary)
	}
	empty := connector.Secret("")
	text, err := empty.MarshalText()
	if got := fmt.Sprintf("%v%s%q%#v", empty, empty, empty, empty) + empty.String() + string(text) + empty.LogValue().String(); got != "" || err != nil {
		t.Errorf("an empty secret: got %q, %v, want nothing", got, err)
	}
}

func leaks(t *testing.T, text, how string) {
	t.Helper()
	hex := fmt.Sprintf("%x", canary)
	if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), hex) || strings.Contains(text, canary[:6]) {
		t.Errorf("%s shows the secret: %s", how, text)
	}
}
