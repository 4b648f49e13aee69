package connector

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
)

// Size is a number of octets. Its text is a whole number and one of the units B, KiB, MiB and GiB, without a space, as
// in "64KiB"; only 0 may stand without a unit. Decimal units (kB, MB, GB) are refused, because they are so often meant
// as the binary ones.
type Size int64

// sizeUnits are the units of a Size, largest first.
var sizeUnits = []struct {
	name   string
	octets int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns the shortest exact text of s, such as "4MiB", "1536B" or "0".
func (s Size) String() string {
	if s == 0 {
		return "0"
	}
	for _, u := range sizeUnits {
		if int64(s)%u.octets == 0 {
			return strconv.FormatInt(int64(s)/u.octets, 10) + u.name
		}
	}
	panic("unreachable: the unit B divides every size")
}

// MarshalText returns String, which UnmarshalText reads back to the same size. It never fails.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets s from its text. The error says what is wrong with the text and does not repeat it; s is then
// unchanged.
func (s *Size) UnmarshalText(text []byte) error {
	t := string(text)
	digits := len(t) - len(strings.TrimLeft(t, "0123456789"))
	number, unit := t[:digits], t[digits:]
	if strings.HasPrefix(t, "-") {
		return errors.New("a size cannot be negative")
	}
	if number == "" {
		return errors.New("is no size: write a whole number and a unit, such as 64KiB")
	}
	octets, err := sizeUnit(unit)
	if err != nil && strings.Trim(number, "0")+unit != "" {
		return err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/octets {
		return errors.New("is more octets than can be counted")
	}
	*s = Size(n * octets)
	return nil
}

// sizeUnit returns the octets of a unit. With an error it returns 1.
func sizeUnit(unit string) (int64, error) {
	for _, u := range sizeUnits {
		if unit == u.name {
			return u.octets, nil
		}
	}
	switch {
	case unit == "":
		return 1, errors.New("has no unit: write B, KiB, MiB or GiB behind the number")
	case strings.HasPrefix(unit, "."), strings.HasPrefix(unit, ","):
		return 1, errors.New("is no whole number: use the next smaller unit")
	case strings.HasPrefix(unit, " "):
		return 1, errors.New("has a space between number and unit")
	}
	return 1, fmt.Errorf("has the unknown unit %q: use B, KiB, MiB or GiB", unit)
}

// Secret is a text that does not show itself: formatted, encoded or logged, alone or in a struct, list or map, it gives
// "***", or "" when it is empty. Only Reveal returns it. Two things are beyond its reach: the verbs %p and %w, which are
// mistakes that go vet reports, and its use as the key of a map that is encoded as JSON.
type Secret string

const hidden = "***"

var (
	_ fmt.Formatter  = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns "***", or "" when s is empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString returns what String returns.
func (s Secret) GoString() string { return s.String() }

// Format writes what String returns, whatever the verb and its flags.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns what String returns; JSON, XML and YAML encoders use it. What it returns cannot be read back.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets s to text. It never fails.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}
