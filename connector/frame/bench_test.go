package frame_test

import (
	"bytes"
	"io"
	"strconv"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

// endless gives the same octets again and again, as much in one read as there is room for.
type endless struct {
	octets []byte
	at     int
}

func (r *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], r.octets[r.at:])
		n += c
		r.at = (r.at + c) % len(r.octets)
	}
	return n, nil
}

var _ io.Reader = (*endless)(nil)

// benchSend is a SEND with three headers and a body of n octets.
func benchSend(n int) []byte {
	return []byte("SEND\ndestination:/topic/orders.eu.berlin\ncontent-type:application/json\ncontent-length:" +
		strconv.Itoa(n) + "\n\n" + string(bytes.Repeat([]byte("x"), n)) + "\x00\n")
}

func BenchmarkDecode(b *testing.B) {
	for _, bench := range []struct {
		name   string
		octets []byte
	}{
		{"heartbeat-and-ack", []byte("\nACK\nid:m-1234567\n\n\x00\n")},
		{"send-small", benchSend(16)},
		{"send-256", benchSend(256)},
		{"send-4096", benchSend(4096)},
		{"send-256-escaped", bytes.Replace(benchSend(256), []byte("\n\n"), []byte("\nx-id:ID\\cab-1234\\c5\\\\6\n\n"), 1)},
		{"send-256-without-length", bytes.Replace(benchSend(256), []byte("content-length:256"), []byte("priority:5"), 1)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			d := frame.NewDecoder(&endless{octets: bench.octets}, benchLimits)
			d.SetVersion(frame.V12)
			var f frame.Frame
			for range 4096 { // The buffer reaches its size.
				if err := d.Decode(&f); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(bench.octets)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(&f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var benchLimits = frame.Limits{Headers: 64, HeaderLine: 8 << 10, Passcode: 16 << 10, Body: 4 << 20}

func BenchmarkAppendMessage(b *testing.B) {
	for _, n := range []int{16, 256, 4096} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			f := frame.Frame{
				Command: frame.Message,
				Headers: headers("subscription", "sub-0", "message-id", "m-1234567", "destination", "/topic/orders.eu.berlin", "content-type", "application/json"),
				Body:    bytes.Repeat([]byte("x"), n),
			}
			buf := frame.Append(nil, frame.V12, &f)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = frame.Append(buf[:0], frame.V12, &f)
			}
		})
	}
}
