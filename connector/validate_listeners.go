package connector

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// off reports whether an address turns its listener off.
func off(address string) bool { return address == "" || address == "off" }

// endpoint is an address that a Config opens.
type endpoint struct {
	path string
	host string
	port int
}

// loopback reports whether only this machine can reach the endpoint. A name other than localhost may resolve to
// anything and does not count.
func (e endpoint) loopback() bool {
	ip := net.ParseIP(e.host)
	return e.host == "localhost" || ip != nil && ip.IsLoopback()
}

// clashes reports whether not both endpoints can be opened.
func (e endpoint) clashes(other endpoint) bool {
	if e.port != other.port || e.port == 0 {
		return false
	}
	return e.everywhere() || other.everywhere() || e.canonical() == other.canonical()
}

func (e endpoint) everywhere() bool {
	ip := net.ParseIP(e.host)
	return e.host == "" || ip != nil && ip.IsUnspecified()
}

func (e endpoint) canonical() string {
	if e.host == "localhost" {
		return "127.0.0.1"
	}
	if ip := net.ParseIP(e.host); ip != nil {
		return ip.String()
	}
	return strings.ToLower(e.host)
}

// endpoint checks an address that is not off.
func (v *validation) endpoint(path, address string) (endpoint, bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		v.faultQuoted(path, address, "is no address", `write host:port such as 127.0.0.1:61613 or [::1]:61613, or "off"`)
		return endpoint{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		v.faultQuoted(path, address, "has no port from 0 to 65535", "0 lets the system choose one")
		return endpoint{}, false
	}
	if name, _, _ := strings.Cut(host, "%"); net.ParseIP(name) == nil && !hostName(host) {
		v.faultQuoted(path, address, "has a host that is neither an IP address nor a name", "")
		return endpoint{}, false
	}
	return endpoint{path, host, int(n)}, true
}

// hostName reports whether s could be a DNS name; the empty one stands for all addresses.
func hostName(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	return strings.Trim(s, allowed) == ""
}

// listeners checks the listeners and, because they share the machine's ports, the embedded server's client port.
func (v *validation) listeners(c Config) {
	l := c.Listeners
	opens := []struct{ name, address string }{
		{"tcp", l.TCP.Address},
		{"tls", l.TLS.Address},
		{"ws", l.WS.Address},
		{"wss", l.WSS.Address},
		{"admin", l.Admin.Address},
	}
	var open []endpoint
	for _, o := range opens {
		path := "listeners." + o.name + ".address"
		if off(o.address) {
			continue
		}
		e, ok := v.endpoint(path, o.address)
		if !ok {
			continue
		}
		if c.Auth.Mode == "none" && !c.AllowInsecure && !e.loopback() {
			v.faultQuoted(path, o.address, "can be reached from other machines, and with auth.mode none everybody is let in",
				"bind a loopback address such as 127.0.0.1:"+strconv.Itoa(e.port)+", or accept it with allow_insecure: true")
		}
		open = append(open, e)
	}
	if e, ok := v.embeddedListen(c); ok {
		open = append(open, e)
	}
	for i, e := range open {
		for _, earlier := range open[:i] {
			if e.clashes(earlier) {
				v.fault(e.path, strconv.Itoa(e.port), "is also the port of "+earlier.path, "give each its own")
				break
			}
		}
	}
	v.tlsFiles("listeners.tls", !off(l.TLS.Address), l.TLS.CertFile, l.TLS.KeyFile)
	v.tlsFiles("listeners.wss", !off(l.WSS.Address), l.WSS.CertFile, l.WSS.KeyFile)
	for _, f := range []struct{ path, file string }{
		{"listeners.ws.cert_file", l.WS.CertFile},
		{"listeners.ws.key_file", l.WS.KeyFile},
	} {
		if f.file != "" {
			v.faultQuoted(f.path, f.file, "has no effect: this listener has no TLS", "configure listeners.wss")
		}
	}
	v.webSocket("listeners.ws", l.WS)
	v.webSocket("listeners.wss", l.WSS)
}

// tlsFiles checks that a certificate and its key come together, and that they are there when they are needed.
func (v *validation) tlsFiles(path string, needed bool, cert, key string) {
	if needed || key != "" {
		v.required(path+".cert_file", cert, "name a PEM file with the certificate")
	}
	if needed || cert != "" {
		v.required(path+".key_file", key, "name a PEM file with the certificate's key")
	}
}

func (v *validation) webSocket(path string, l WSListener) {
	if !off(l.Address) && len(l.Paths) == 0 {
		v.fault(path+".paths", "", "is empty", "list at least one path, such as /stomp")
	}
	each(v, path+".paths", l.Paths, itself, func(at, p string) {
		if !strings.HasPrefix(p, "/") || strings.ContainsFunc(p, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`?#{}"\`, r)
		}) {
			v.faultQuoted(at, p, "is no plain URL path", "begin it with / and use no query, blank or brace")
		}
	})
	each(v, path+".origins", l.Origins, itself, func(at, o string) {
		u, err := url.Parse(o)
		if o != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
			v.faultQuoted(at, o, "is no origin", "write scheme://host or scheme://host:port, or * for any")
		}
	})
}
