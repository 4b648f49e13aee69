package broker

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natscontext"
)

const (
	// dialTimeout bounds one attempt to connect to one server.
	dialTimeout = 3 * time.Second
	// pingInterval and pingsOut say after what time a server that answers nothing is given up.
	pingInterval = 5 * time.Second
	pingsOut     = 2
)

// External reports whether c names a NATS of its own, so that none is embedded.
func (c Config) External() bool { return c.URL != "" || c.Context != "" }

// startExternal makes the connections. NATS may be down: then they are made as soon as it is there.
func (b *Broker) startExternal() error {
	e := &external{cfg: b.cfg}
	if b.cfg.Context != "" {
		settings, err := readContext(b.cfg.Context)
		if err != nil {
			return fmt.Errorf("nats.context: %w", err)
		}
		e.settings = settings
	}
	b.ext = e
	b.links, b.denials = newGroup(b.log), newDenials()
	for r, nc := range map[Role]**nats.Conn{DataRole: &b.Data, ControlRole: &b.Control, WideRole: &b.Wide} {
		b.links.members[r].role, b.links.members[r].set = r, nc
	}
	for _, m := range b.links.members {
		nc, err := e.connect(append(b.commonOptions(m.role), b.links.options(m.role, e.urls())...))
		if err != nil {
			return fmt.Errorf("connecting to NATS: %w", err)
		}
		*m.set = nc
		b.links.add(m.role, nc)
	}
	var err error
	b.JS, err = e.jetStream(b.Control)
	return err
}

// external is what leads to a NATS outside.
type external struct {
	cfg      Config
	settings natscontext.Settings // of the context; empty without one
}

// urls are the servers to try. nats.url wins over the context's.
func (e *external) urls() []string {
	list := e.cfg.URL
	if list == "" {
		list = e.settings.URL
	}
	var urls []string
	for u := range strings.SplitSeq(list, ",") {
		if u = strings.TrimSpace(u); u != "" {
			urls = append(urls, u)
		}
	}
	if len(urls) == 0 {
		urls = []string{nats.DefaultURL} // As the nats command line tool does with a context that has none.
	}
	return urls
}

// address is urls for people, without logins.
func (e *external) address() string {
	urls := e.urls()
	for i, text := range urls {
		if u, err := url.Parse(text); err == nil && u.User != nil {
			u.User = nil
			urls[i] = u.String()
		}
	}
	return strings.Join(urls, ",")
}

func (e *external) connect(opts []nats.Option) (*nats.Conn, error) {
	own, err := e.options()
	if err != nil {
		return nil, err
	}
	opts = append(own, opts...)
	if e.cfg.Context == "" {
		return nats.Connect(strings.Join(e.urls(), ","), opts...)
	}
	nc, _, err := natscontext.Connect(e.cfg.Context, opts...)
	return nc, err
}

// options are the login and the transport security of the configuration; they win over the context's.
func (e *external) options() ([]nats.Option, error) {
	c := e.cfg
	opts := []nats.Option{
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(), // Credentials may be renewed while natstomp runs.
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsOut),
		nats.FlusherTimeout(pingsOut * pingInterval), // Publishes hold the connection's lock while they write.
	}
	if c.Creds != "" || c.NKey != "" || c.User != "" || c.Token != "" {
		opts = append(opts, forgetLogin)
	}
	switch {
	case c.Creds != "":
		opts = append(opts, nats.UserCredentials(c.Creds))
	case c.NKey != "":
		key, err := nats.NkeyOptionFromSeed(c.NKey)
		if err != nil {
			return nil, fmt.Errorf("nats.nkey: %w", err)
		}
		opts = append(opts, key)
	case c.User != "":
		opts = append(opts, nats.UserInfo(c.User, c.Password))
	case c.Token != "":
		opts = append(opts, nats.Token(c.Token))
	}
	if c.TLS.CAFile != "" {
		opts = append(opts, nats.RootCAs(c.TLS.CAFile))
	}
	if c.TLS.CertFile != "" {
		opts = append(opts, nats.ClientCert(c.TLS.CertFile, c.TLS.KeyFile))
	}
	if c.TLS.First {
		opts = append(opts, nats.TLSHandshakeFirst())
	}
	return append(opts, atLeastTLS12), nil
}

// forgetLogin takes the context's login away.
func forgetLogin(o *nats.Options) error {
	o.User, o.Password, o.Token, o.Nkey = "", "", "", ""
	o.UserInfo, o.TokenHandler, o.UserJWT, o.SignatureCB = nil, nil, nil, nil
	return nil
}

func atLeastTLS12(o *nats.Options) error {
	if o.TLSConfig != nil {
		o.TLSConfig.MinVersion = max(o.TLSConfig.MinVersion, tls.VersionTLS12)
	}
	return nil
}

// jetStream is the JetStream API in the domain, or under the prefix, that the configuration or the context names.
func (e *external) jetStream(nc *nats.Conn) (jetstream.JetStream, error) {
	switch {
	case e.cfg.Domain != "":
		return jetstream.NewWithDomain(nc, e.cfg.Domain)
	case e.settings.JSAPIPrefix != "":
		return jetstream.NewWithAPIPrefix(nc, e.settings.JSAPIPrefix)
	case e.settings.JSDomain != "":
		return jetstream.NewWithDomain(nc, e.settings.JSDomain)
	}
	return jetstream.New(nc)
}

// firstServer puts the server with that host in front and keeps the order of the rest.
func firstServer(urls []string, host string) []string {
	i := slices.IndexFunc(urls, func(text string) bool { return hostOf(text) == host })
	if i <= 0 {
		return urls
	}
	return slices.Concat(urls[i:i+1], urls[:i], urls[i+1:])
}

// hostOf is host:port of a URL as nats.go completes it.
func hostOf(text string) string {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	if u.Port() == "" {
		switch u.Scheme {
		case "ws":
			return u.Host + ":80"
		case "wss":
			return u.Host + ":443"
		}
		return u.Host + ":4222"
	}
	return u.Host
}
