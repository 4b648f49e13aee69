package listen

import "bytes"

// lengthHeader begins the header line that says where a body ends.
var lengthHeader = []byte("\ncontent-length:")

// frameEnd returns how many octets of b are its first STOMP frame, with the line end behind it, as this server writes
// them; 0 when the frame is not whole. A line end outside a frame is a heart-beat, and a frame by itself.
func frameEnd(b []byte) int {
	if b[0] == '\n' {
		return 1
	}
	head := bytes.Index(b, []byte("\n\n"))
	if head < 0 {
		return 0
	}
	end := head + 2
	if i := bytes.Index(b[:head+1], lengthHeader); i >= 0 {
		length := 0
		for _, c := range b[i+len(lengthHeader):] {
			if c < '0' || c > '9' {
				break
			}
			length = length*10 + int(c-'0')
		}
		end += length
	} else if n := bytes.IndexByte(b[end:], 0); n >= 0 {
		end += n
	} else {
		return 0
	}
	end += 2 // NUL and LF.
	if end > len(b) {
		return 0
	}
	return end
}
