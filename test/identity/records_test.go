package identity_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
)

// Kinds of records.
const (
	kindHandshake = 22
	kindData      = 23
)

// records is a TLS client that writes the records that it likes: crypto/tls has done its handshake and reads.
type records struct {
	*tls.Conn
	t   *testing.T
	raw net.Conn
	seq uint64

	secret []byte // of TLS 1.3
	aead   cipher.AEAD
	iv     []byte
}

// sniffer keeps the octets that came first.
type sniffer struct {
	net.Conn
	seen []byte
}

func (s *sniffer) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.seen = append(s.seen, p[:min(n, max(0, 1<<10-len(s.seen)))]...)
	return n, err
}

// short gives a connection short segments and a small window, so that the server's kernel keeps little of what nobody reads.
func short(_, _ string, c syscall.RawConn) error {
	var fault error
	err := c.Control(func(fd uintptr) {
		fault = errors.Join(
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536),
			syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<10),
		)
	})
	return errors.Join(err, fault)
}

// records connects to a listener with TLS of that version.
func (g *server) records(over string, version uint16) *records {
	g.t.Helper()
	raw, err := (&net.Dialer{LocalAddr: elsewhere(), Timeout: rig.Patience, Control: short}).Dial("tcp", g.At(over))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = raw.Close() }) // It may be closed already.
	var keys bytes.Buffer
	config := rig.Authority().Trust()
	config.ServerName, config.KeyLogWriter = "127.0.0.1", &keys
	config.MinVersion, config.MaxVersion = version, version
	config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	s := &sniffer{Conn: raw}
	r := &records{Conn: tls.Client(s, config), t: g.t, raw: raw}
	if err := raw.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
		g.t.Fatal(err)
	}
	if err := r.Handshake(); err != nil {
		g.t.Fatal(err)
	}
	if suite := tls.CipherSuiteName(r.ConnectionState().CipherSuite); !strings.Contains(suite, "AES_128_GCM_SHA256") {
		g.t.Fatalf("got %s, which these records are not made for", suite)
	}
	if version == tls.VersionTLS13 {
		r.secret, _ = logged(g.t, keys.String(), "CLIENT_TRAFFIC_SECRET_0")
		r.rekey()
		return r
	}
	master, clientRandom := logged(g.t, keys.String(), "CLIENT_RANDOM")
	serverRandom := s.seen[5+4+2:][:32] // Behind the heads of record and message, and the version.
	block := prf(master, append(append([]byte("key expansion"), serverRandom...), clientRandom...), 2*16+2*4)
	r.setKey(block[:16])
	r.iv, r.seq = block[32:36], 1 // Finished was the first.
	return r
}

// logged finds a secret in what crypto/tls has logged, and the random number before it.
func logged(t *testing.T, keys, label string) (secret, random []byte) {
	t.Helper()
	for line := range strings.Lines(keys) {
		parts := strings.Fields(line)
		if len(parts) != 3 || parts[0] != label {
			continue
		}
		var err error
		if random, err = hex.DecodeString(parts[1]); err != nil {
			t.Fatal(err)
		}
		if secret, err = hex.DecodeString(parts[2]); err != nil {
			t.Fatal(err)
		}
		return secret, random
	}
	t.Fatalf("no %s in the key log", label)
	return nil, nil
}

// prf is P_SHA256 (RFC 5246, section 5).
func prf(secret, seed []byte, n int) (out []byte) {
	mac := func(parts ...[]byte) []byte {
		h := hmac.New(sha256.New, secret)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	for a := mac(seed); len(out) < n; a = mac(a) {
		out = append(out, mac(a, seed)...)
	}
	return out[:n]
}

// expand is HKDF-Expand-Label without context (RFC 8446, section 7.1).
func (r *records) expand(label string, n int) []byte {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(append(append(info, byte(len(label))), label...), 0)
	out, err := hkdf.Expand(sha256.New, r.secret, string(info), n)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// rekey uses the secret from now on.
func (r *records) rekey() {
	r.setKey(r.expand("key", 16))
	r.iv, r.seq = r.expand("iv", 12), 0
}

func (r *records) setKey(key []byte) {
	block, err := aes.NewCipher(key)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.aead, err = cipher.NewGCM(block); err != nil {
		r.t.Fatal(err)
	}
}

// seal appends a record.
func (r *records) seal(dst []byte, kind byte, data []byte) []byte {
	seq := binary.BigEndian.AppendUint64(nil, r.seq)
	r.seq++
	if r.secret == nil { // RFC 5288.
		more := append(bytes.Clone(seq), kind, 3, 3)
		more = binary.BigEndian.AppendUint16(more, uint16(len(data)))
		dst = binary.BigEndian.AppendUint16(append(dst, kind, 3, 3), uint16(len(seq)+len(data)+r.aead.Overhead()))
		return r.aead.Seal(append(dst, seq...), append(bytes.Clone(r.iv), seq...), data, more)
	}
	head := binary.BigEndian.AppendUint16([]byte{kindData, 3, 3}, uint16(len(data)+1+r.aead.Overhead()))
	nonce := bytes.Clone(r.iv)
	for i, b := range seq {
		nonce[4+i] ^= b
	}
	return r.aead.Seal(append(dst, head...), nonce, append(bytes.Clone(data), kind), head)
}

// update appends a KeyUpdate that asks for one in return, and what follows has the next key.
func (r *records) update(dst []byte) []byte {
	dst = r.seal(dst, kindHandshake, []byte{24, 0, 0, 1, 1})
	r.secret = r.expand("traffic upd", sha256.Size)
	r.rekey()
	return dst
}

// put writes octets as they are. An error says that the server has closed.
func (r *records) put(octets []byte) error {
	if err := r.raw.SetWriteDeadline(time.Now().Add(rig.Patience)); err != nil {
		r.t.Fatal(err)
	}
	_, err := r.raw.Write(octets)
	return err
}

// say writes data in one record. Over WebSocket it is what a record has, too.
func (r *records) say(data string) {
	r.t.Helper()
	if err := r.put(r.seal(nil, kindData, []byte(data))); err != nil {
		r.t.Fatal(err)
	}
}

// hear reads until what it has read ends so.
func (r *records) hear(end string) string {
	r.t.Helper()
	if err := r.SetReadDeadline(time.Now().Add(rig.Patience)); err != nil {
		r.t.Fatal(err)
	}
	var all []byte
	for buf := make([]byte, 4<<10); !strings.HasSuffix(string(all), end); {
		n, err := r.Read(buf)
		if all = append(all, buf[:n]...); err != nil {
			r.t.Fatalf("got %q, %v, want %q at the end", all, err, end)
		}
	}
	return string(all)
}
