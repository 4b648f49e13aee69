package main

import (
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/natstomp/natstomp/connector/frame"
)

// show writes a message: in raw form its body and a line end, as json one object on one line.
func show(w io.Writer, form string, f *frame.Frame) error {
	if form == "raw" {
		_, err := w.Write(append(append([]byte(nil), f.Body...), '\n'))
		return err
	}
	return json.NewEncoder(w).Encode(describe(f))
}

// message is a frame as JSON. A body that is no text is in Octets, in base64.
type message struct {
	Destination string            `json:"destination,omitempty"`
	Headers     map[string]string `json:"headers"`
	Body        *string           `json:"body,omitempty"`
	Octets      []byte            `json:"body_base64,omitempty"`
}

func describe(f *frame.Frame) message {
	m := message{Destination: f.Get("destination"), Headers: make(map[string]string, len(f.Headers))}
	for _, h := range f.Headers {
		if _, repeated := m.Headers[string(h.Name)]; !repeated && string(h.Name) != "destination" {
			m.Headers[string(h.Name)] = string(h.Value)
		}
	}
	if utf8.Valid(f.Body) {
		text := string(f.Body)
		m.Body = &text
	} else {
		m.Octets = f.Body
	}
	return m
}
