package soak_test

import (
	"fmt"
	"strings"
)

// attack is what a hostile client sends, and the text that the ERROR must contain. After the ERROR the server closes.
type attack struct {
	name    string
	version string // Of a CONNECT before it; empty: none.
	octets  string
	want    string // Empty: the connection ends without a word, since the peer has left.
	leaves  bool   // The client ends its side behind the octets.
}

// attacks are the cases A1, D1 to D3, L5 and L6 of the reliability programme.
func attacks() []attack {
	var all []attack
	for _, group := range [][]attack{beforeConnect(), lengths(), reservedNames(), injections(), malformed()} {
		all = append(all, group...)
	}
	return all
}

// raw is a frame of header lines as they are.
func raw(command string, lines ...string) string {
	return command + "\n" + strings.Join(append(lines, ""), "\n") + "\n\x00"
}

// beforeConnect are frames in the wrong order (A1) and too much before anybody has said who they are (L5).
func beforeConnect() []attack {
	const effect = "destination:/topic/side/effect"
	var all []attack
	for _, command := range []string{"SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT"} {
		all = append(all, attack{name: command + " first", octets: raw(command, effect, "id:1", "transaction:t"), want: "before CONNECT"})
	}
	for _, command := range []string{"CONNECTED", "MESSAGE", "RECEIPT", "ERROR"} {
		all = append(all, attack{name: command + " first", octets: raw(command, effect), want: command})
	}
	return append(all,
		attack{name: "SEND behind a refused CONNECT", octets: raw("CONNECT", "accept-version:9.9") + raw("SEND", effect), want: "version"},
		attack{name: "queue behind a refused CONNECT", octets: raw("CONNECT", "accept-version:9.9") + raw("SEND", "destination:/queue/side/effect"), want: "version"},
		attack{name: "SEND behind a fault", version: "1.2", octets: raw("SEND", "nothing:x") + raw("SEND", effect), want: "destination"},
		attack{name: "second CONNECT", version: "1.2", octets: raw("CONNECT", "accept-version:1.2") + raw("SEND", effect), want: "second CONNECT"},
		attack{name: "second STOMP", version: "1.1", octets: raw("STOMP", "accept-version:1.1") + raw("SEND", effect), want: "second STOMP"},
		attack{name: "CONNECT with an endless command", octets: strings.Repeat("C", 1<<20), want: "no command"},
		attack{name: "CONNECT with an endless header", octets: "CONNECT\nlogin:" + strings.Repeat("x", 1<<20), want: "limits.header_line"},
		attack{name: "CONNECT with an endless passcode", octets: "CONNECT\npasscode:" + strings.Repeat("x", 1<<20), want: "limits.passcode"},
		attack{name: "CONNECT with too many headers", octets: "CONNECT\n" + strings.Repeat("a:b\n", 65), want: "limits.headers"},
		attack{name: "CONNECT that is too large", octets: "CONNECT\n" + strings.Repeat("a:"+strings.Repeat("x", 4_000)+"\n", 20), want: "limits.frame_before_connect"},
		attack{name: "CONNECT with a body", octets: "CONNECT\n\n" + strings.Repeat("x", 1<<20), want: "limits.header_line"},
		attack{name: "HTTP", octets: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", want: "unknown command"},
		attack{name: "TLS", octets: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x01", 100) + "\n", want: "command"},
		attack{name: "half a CONNECT", octets: "CONNECT\naccept-version:1.2\n", leaves: true},
		attack{name: "EOLs only", octets: strings.Repeat("\n", 1<<20), leaves: true},
	)
}

// lengths are stated lengths and sizes that must not be believed (L5, L6).
func lengths() []attack {
	var all []attack
	add := func(name, version, octets, want string) {
		all = append(all, attack{name: name, version: version, octets: octets, want: want})
	}
	for _, length := range []string{
		"4194305", "4294967296", "1000000000000000000", "9223372036854775807", "9223372036854775808", "18446744073709551616",
		"99999999999999999999999999999999",
	} {
		add("content-length "+length, "1.2", "SEND\ndestination:/topic/side/effect\ncontent-length:"+length+"\n\nx", "limits.body")
	}
	for _, length := range []string{
		"-1", "-9223372036854775808", "1e9", "+5", " 5", "5 ", "0x5", "", "5,5", "five", "5.0", "\t5",
	} {
		add(fmt.Sprintf("content-length %q", length), "1.2",
			"SEND\ndestination:/topic/side/effect\ncontent-length:"+length+"\n\nhello\x00", "content-length")
	}
	add("content-length too small", "1.2", "SEND\ndestination:/topic/side/effect\ncontent-length:3\n\nhello\x00", "content-length")
	add("content-length repeated", "1.1", "SEND\ndestination:/topic/side/effect\ncontent-length:3\ncontent-length:5\n\nhello\x00", "content-length")
	add("body without NUL", "1.0", "SEND\ndestination:/topic/side/effect\n\n"+strings.Repeat("x", 5<<20), "limits.body")
	add("header line", "1.2", "SEND\na:"+strings.Repeat("x", 8<<10)+"\n", "limits.header_line")
	add("endless header name", "1.2", "SEND\n"+strings.Repeat("x", 1<<20), "limits.header_line")
	add("too many headers", "1.2", "SEND\n"+strings.Repeat("a:b\n", 65), "limits.headers")
	add("endless headers", "1.1", "SUBSCRIBE\n"+strings.Repeat("a:b\n", 1<<18), "limits.headers")
	add("endless command", "1.2", strings.Repeat("S", 1<<20), "no command")
	add("long receipt", "1.2", raw("SEND", "destination:/topic/a", "receipt:"+strings.Repeat("r", 1_025)), "limits.id")
	add("long id", "1.2", raw("SUBSCRIBE", "destination:/topic/a", "id:"+strings.Repeat("r", 1_025)), "limits.id")
	add("long transaction", "1.2", raw("BEGIN", "transaction:"+strings.Repeat("r", 1_025)), "limits.id")
	all = append(all,
		attack{name: "half a body", version: "1.2", octets: "SEND\ndestination:/topic/side/effect\ncontent-length:4000000\n\nx", leaves: true},
		attack{name: "missing NUL", version: "1.2", octets: "SEND\ndestination:/topic/side/effect\n\nx", leaves: true})
	return all
}

// reservedNames are the subjects of NATS and of natstomp itself (D1).
func reservedNames() []attack {
	var all []attack
	for _, channel := range []string{
		"$JS/API/INFO", "$JS.API.STREAM.LIST", "$JS/API/STREAM/DELETE/STORE", "$JS/ACK/x", "$SYS/REQ/SERVER/PING", "$KV/b/k", "$O/b",
		"$SRV/PING", "$G/x", "_INBOX/x/y", "_INBOX.x", "_R_/x", "_natstomp/once/x", "stomp/queue/q", "stomp.store.x", "stomp", "$", "_",
	} {
		for _, prefix := range []string{"/topic/", "topic/", "/events/", "/"} {
			destination := prefix + channel
			all = append(all,
				attack{name: "SEND " + destination, version: "1.2", octets: raw("SEND", "destination:"+destination), want: "reserved"},
				attack{name: "SUBSCRIBE " + destination, version: "1.2", octets: raw("SUBSCRIBE", "id:1", "destination:"+destination), want: "reserved"})
		}
	}
	for _, destination := range []string{"/topic/$JS/>", "/topic/stomp/>", "/topic/_INBOX/*", "/topic/$SYS/#"} {
		all = append(all, attack{name: "SUBSCRIBE " + destination, version: "1.2", octets: raw("SUBSCRIBE", "id:1", "destination:"+destination), want: "reserved"})
	}
	return all
}

// injections put octets into destinations that mean something on the NATS line (D2), or too much of them (D3).
func injections() []attack {
	var all []attack
	both := func(name, version, destination, want string) {
		all = append(all,
			attack{name: "SEND " + name, version: version, octets: raw("SEND", "destination:"+destination), want: want},
			attack{name: "SUBSCRIBE " + name, version: version, octets: raw("SUBSCRIBE", "id:1", "destination:"+destination), want: want})
	}
	for name, octets := range map[string]string{
		"CRLF": `\r\nPUB side.effect 1\r\nx\r\n`, "LF": `\nPUB`, "CR": `\r`, "space": " 1", "tab": "\t1", "NUL within": "\x01", "DEL": "\x7f",
		"bad UTF-8": "\xff", "overlong UTF-8": "\xc0\xaf", "half a rune": "\xe4\xb8", "C1": "\xc2\x85",
	} {
		both(name, "1.2", "/topic/a"+octets+"/b", "destination")
		both(name+" in a queue", "1.2", "/queue/a"+octets, "destination")
	}
	both("LF in 1.1", "1.1", `/topic/a\nPUB`, "destination")
	for _, destination := range []string{
		"/topic//a", "/topic/a/", "/topic/", "/topic", "//topic/a", "/", "", "/topic/a..b", "/topic/.a", "/topic/a.", "/queue//a", "/queue/",
		"/topic/a*", "/topic/>/a", "/topic/a>", "/queue/*", "/queue/>", "/queue/#",
		"/topic/" + strings.Repeat("a/", 32) + "a", "/topic/" + strings.Repeat("x", 506), "/queue/" + strings.Repeat("x", 100_000)[:506],
		"/exchange/a/b", "/amq/queue/a", "/reply-queue/a", "/dsub/a", "/user/a", "/topic/a,/topic/b", "/queue/a?consumer.prefetchSize=1",
	} {
		want := "destination"
		if destination == "/queue/*" || destination == "/queue/>" || destination == "/queue/#" {
			want = "wildcard"
		}
		both(fmt.Sprintf("%.40q", destination), "1.2", destination, want)
	}
	for _, destination := range []string{"/topic/*", "/topic/>", "/topic/a/*", "/topic/a/#", "/topic/**", "/topic/*/a"} {
		all = append(all, attack{name: "SEND " + destination, version: "1.2", octets: raw("SEND", "destination:"+destination), want: "wildcard"})
	}
	return all
}

// malformed are frames that break the grammar.
func malformed() []attack {
	return []attack{
		{name: "no colon", version: "1.2", octets: raw("SEND", "destination"), want: "colon"},
		{name: "no name", version: "1.2", octets: raw("SEND", ":x"), want: "name"},
		{name: "undefined escape", version: "1.2", octets: raw("SEND", `destination:/topic/a\t`), want: "escape"},
		{name: "escape at the end", version: "1.1", octets: raw("SEND", `destination:/topic/a\`), want: "escape"},
		{name: "CR escape in 1.1", version: "1.1", octets: raw("SEND", `destination:/topic/a\r`), want: "escape"},
		{name: "NUL in a header", version: "1.2", octets: "SEND\ndestination:/topic/a\x00\n\n\x00", want: "header"},
		{name: "NUL for a command", version: "1.2", octets: "\x00\x00\x00\n\n\x00", want: "command"},
		{name: "unknown command", version: "1.2", octets: raw("DELETE", "destination:/topic/a"), want: "unknown command"},
		{name: "lower case", version: "1.2", octets: raw("send", "destination:/topic/a"), want: "unknown command"},
		{name: "server's frame", version: "1.2", octets: raw("MESSAGE", "destination:/topic/a"), want: "MESSAGE"},
		{name: "foreign message id", version: "1.2", octets: raw("ACK", "id:1-1"), want: "1-1"},
		{name: "huge message id", version: "1.2", octets: raw("NACK", "id:99999999999999999999-99999999999999999999"), want: "NACK"},
		{name: "negative message id", version: "1.2", octets: raw("ACK", "id:-1--1"), want: "ACK"},
		{name: "unknown transaction", version: "1.2", octets: raw("COMMIT", "transaction:none"), want: "transaction"},
		{name: "huge prefetch", version: "1.2", octets: raw("SUBSCRIBE", "id:1", "destination:/queue/hostile/prefetch", "prefetch-count:99999999999"), want: "prefetch-count"},
		{name: "negative prefetch", version: "1.2", octets: raw("SUBSCRIBE", "id:1", "destination:/queue/hostile/prefetch", "prefetch-count:-1"), want: "prefetch-count"},
		{name: "huge group", version: "1.2", octets: raw("SUBSCRIBE", "id:1", "destination:/topic/a", "x-group:"+strings.Repeat("g", 100)), want: "x-group"},
		{name: "group of octets", version: "1.2", octets: raw("SUBSCRIBE", "id:1", "destination:/topic/a", `x-group:g\r\nPUB a 0`), want: "x-group"},
	}
}
