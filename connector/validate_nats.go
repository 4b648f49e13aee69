package connector

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/bridge/broker"
)

// maxDurabilityText bounds nats.durability, which goes into CONNECTED, in octets.
const maxDurabilityText = 64

func (v *validation) nats(c Config) {
	n := c.NATS
	urlUser := v.natsURLs(n.URL)
	if strings.ContainsFunc(n.Context, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		v.faultQuoted("nats.context", n.Context, "is no name of a context", "nats context ls shows them")
	}
	v.credentials(n, urlUser)
	if n.TLS.CertFile != "" || n.TLS.KeyFile != "" {
		v.tlsFiles("nats.tls", true, n.TLS.CertFile, n.TLS.KeyFile)
	}
	if strings.ContainsFunc(n.Domain, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(".*>", r) }) {
		v.faultQuoted("nats.domain", n.Domain, "is no JetStream domain", "a domain has no dot, blank or wildcard")
	}
	v.oneOf("nats.replicas", n.Replicas, "auto", "1", "3", "5")
	v.durabilityText(n)
	atLeast(v, "nats.publish_timeout", n.PublishTimeout, time.Millisecond, "")
	v.embedded(n)
}

// natsURLs checks the list of URLs and reports whether one carries a login.
func (v *validation) natsURLs(list string) (login bool) {
	if list == "" {
		return false
	}
	webSockets, urls := 0, strings.Split(list, ",")
	for _, text := range urls {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil {
			// The text may hold a password: neither it nor the parser's message, which repeats it, is shown.
			v.fault("nats.url", "", "is no URL, or no list of URLs separated by commas", "write nats://host:4222")
			return login
		}
		login = login || u.User != nil
		switch u.Scheme {
		case "nats", "tls":
		case "ws", "wss":
			webSockets++
		default:
			v.faultQuoted("nats.url", u.Redacted(), "has the unknown scheme "+strconv.Quote(u.Scheme), "use nats, tls, ws or wss")
		}
		if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Hostname() == "" || u.Port() != "" && (err != nil || port == 0) {
			v.faultQuoted("nats.url", u.Redacted(), "has no host, or a port that is none", "write nats://host:4222")
		}
	}
	if webSockets > 0 && webSockets < len(urls) {
		v.fault("nats.url", "", "mixes WebSocket URLs with others", "the NATS client wants one kind")
	}
	return login
}

// credentials checks that there is at most one way to log in, and somewhere to log in to.
func (v *validation) credentials(n broker.Config, urlUser bool) {
	ways := []struct {
		path string
		set  bool
	}{
		{"nats.url", urlUser},
		{"nats.creds", n.Creds != ""},
		{"nats.nkey", n.NKey != ""},
		{"nats.user", n.User != ""},
		{"nats.token", n.Token != ""},
	}
	first := ""
	for _, w := range ways {
		switch {
		case !w.set:
		case !n.External():
			v.fault(w.path, "", "has no effect: the embedded server needs no credentials", "set nats.url or nats.context, or remove it")
		case first != "":
			v.fault(w.path, "", "is a second way to log in beside "+first, "keep one of them")
		default:
			first = w.path
		}
	}
	if n.Password != "" && n.User == "" {
		v.fault("nats.password", "", "has no nats.user", "set both or none")
	}
	if !n.External() && (n.TLS != broker.TLS{}) {
		v.fault("nats.tls", "", "has no effect: the link to the embedded server is inside the process", "set nats.url or nats.context, or remove it")
	}
}

func (v *validation) durabilityText(n broker.Config) {
	switch {
	case n.Durability == "":
	case !n.External():
		v.faultQuoted("nats.durability", n.Durability, "describes an external NATS, and none is configured", "use nats.embedded.durability")
	case len(n.Durability) > maxDurabilityText || strings.ContainsFunc(n.Durability, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '\\'
	}):
		v.faultQuoted("nats.durability", n.Durability, "cannot be put into CONNECTED", "use up to 64 printable ASCII characters without blank and backslash")
	}
}

func (v *validation) embedded(n broker.Config) {
	e := n.Embedded
	if !n.External() {
		v.required("nats.embedded.store_dir", e.StoreDir, "name a directory")
	}
	v.oneOf("nats.embedded.durability", e.Durability, broker.DurabilityFsync, broker.DurabilityOS, broker.DurabilityMemory)
	name := func(entry string) string {
		name, _, _ := strings.Cut(entry, ":")
		return name
	}
	each(v, "nats.embedded.users", e.Users, name, func(at, entry string) {
		name, password, _ := strings.Cut(entry, ":")
		// An entry without a colon may be a password alone, so it is never shown.
		if name == "" || password == "" || strings.ContainsAny(name, " \t\r\n") {
			v.fault(at, "", "is no name:password", "")
		}
	})
}

// embeddedListen checks the client port of the embedded server and returns it if it is open.
func (v *validation) embeddedListen(c Config) (endpoint, bool) {
	const path = "nats.embedded.listen"
	n := c.NATS
	if off(n.Embedded.Listen) {
		return endpoint{}, false
	}
	e, ok := v.endpoint(path, n.Embedded.Listen)
	if !ok || n.External() {
		return endpoint{}, false
	}
	protected := len(n.Embedded.Users) > 0 || n.Embedded.ConfigFile != ""
	if !protected && !c.AllowInsecure && !e.loopback() {
		v.faultQuoted(path, n.Embedded.Listen, "can be reached from other machines, and nothing protects it",
			"bind a loopback address, set nats.embedded.users or nats.embedded.config_file, or accept it with allow_insecure: true")
	}
	return e, true
}
