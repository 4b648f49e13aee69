package connector

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/router"
)

// Fault is one thing that is wrong with a Config.
type Fault struct {
	// Path is the key at fault, such as "limits.body" or "queues.settings[0].queue".
	Path string
	// Value is the offending value as text, shortened; empty where there is none or where it is secret.
	Value string
	// Reason says what is wrong, to be read after path and value.
	Reason string
	// Hint says what to do about it; may be empty.
	Hint string
}

// Error returns the fault on one line.
func (f Fault) Error() string {
	text := f.Path + ": "
	if f.Value != "" {
		text += f.Value + " "
	}
	text += f.Reason
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text
}

// Faults are all the faults of a Config, in the order of its keys. It is the type of the error of Validate.
type Faults []Fault

// Error returns the faults, one on each line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Validate checks every key of c and the rules between them. It returns nil or Faults with all that is wrong. It looks
// at the values only: whether files exist and addresses are free shows at Start.
func (c Config) Validate() error {
	v := &validation{}
	v.listeners(c)
	v.auth(c.Auth)
	v.cookie(c)
	v.nats(c)
	v.authz(c.Authz)
	v.destinations(c)
	v.limits(c.Limits)
	if c.MemoryLimit != 0 {
		atLeast(v, "memory_limit", c.MemoryLimit, minMemoryLimit, "or 0 for off; less than this is in use before the first client")
	}
	v.queues(c)
	v.store(c)
	atLeast(v, "rpc.timeout", c.RPC.Timeout, time.Millisecond, "")
	wholeMillis(v, "rpc.timeout", c.RPC.Timeout)
	atLeast(v, "transactions.remember", c.Transactions.Remember, time.Second, "")
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	if len(v.faults) == 0 {
		return nil
	}
	return v.faults
}

const minMemoryLimit Size = 64 << 20

// validation collects faults.
type validation struct {
	faults Faults
	router *router.Router // Set by destinations, which comes before what needs it.
}

// fault notes a fault of the value at path. The value is shown: it must not be secret.
func (v *validation) fault(path, value, reason, hint string) {
	v.faults = append(v.faults, Fault{Path: path, Value: shown(value), Reason: reason, Hint: hint})
}

// faultQuoted is fault for a text.
func (v *validation) faultQuoted(path, value, reason, hint string) {
	v.fault(path, strconv.Quote(value), reason, hint)
}

// shown shortens a value so that a fault stays on one line.
func shown(value string) string {
	const most = 120
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "..."
}

func (v *validation) oneOf(path, value string, allowed ...string) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	v.faultQuoted(path, value, "is not one of "+strings.Join(allowed, ", "), "")
	return false
}

// required notes a fault if value is empty.
func (v *validation) required(path, value, reason string) {
	if value == "" {
		v.fault(path, "", "is missing", reason)
	}
}

// quantity is what the numbers of a Config are.
type quantity interface{ int | Size | time.Duration }

// atLeast notes a fault if value is below least.
func atLeast[T quantity](v *validation, path string, value, least T, hint string) bool {
	if value < least {
		v.fault(path, fmt.Sprint(value), fmt.Sprintf("is less than %v", least), hint)
		return false
	}
	return true
}

// within notes a fault if value is below least or above most.
func within[T quantity](v *validation, path string, value, least, most T, hint string) bool {
	if value > most {
		v.fault(path, fmt.Sprint(value), fmt.Sprintf("is more than %v", most), hint)
		return false
	}
	return atLeast(v, path, value, least, hint)
}

// notBelow notes a fault if value is below that of another key.
func notBelow[T quantity](v *validation, path string, value T, otherPath string, other T, hint string) {
	if value < other {
		v.fault(path, fmt.Sprint(value), fmt.Sprintf("is less than %s (%v)", otherPath, other), hint)
	}
}

// wholeMillis notes a fault if d has a fraction of a millisecond, which no STOMP header can express.
func wholeMillis(v *validation, path string, d time.Duration) {
	if d%time.Millisecond != 0 {
		v.fault(path, d.String(), "is no whole number of milliseconds", "")
	}
}

// each calls check for the elements of a list with their paths, and notes a fault for one that key maps to the same
// value as an earlier one.
func each[T any, K cmp.Ordered](v *validation, path string, list []T, key func(T) K, check func(path string, element T)) {
	first := make(map[K]int, len(list))
	for i, element := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		k := key(element)
		if earlier, ok := first[k]; ok {
			v.fault(at, "", fmt.Sprintf("repeats %s[%d]", path, earlier), "")
			continue
		}
		first[k] = i
		check(at, element)
	}
}

// itself is the key of elements that are compared as they are.
func itself(s string) string { return s }
