package rig

import "github.com/natstomp/natstomp/test/stompclient"

// Frame is stompclient.New, except that a header "body" is the body.
func Frame(command string, nameValue ...string) stompclient.Frame {
	f := stompclient.New(command, nameValue...)
	for i, h := range f.Headers {
		if h.Name == "body" {
			f.Headers = append(f.Headers[:i], f.Headers[i+1:]...)
			return f.WithBody([]byte(h.Value))
		}
	}
	return f
}

// Send is a SEND.
func Send[T ~string | ~[]byte](destination string, body T, nameValue ...string) stompclient.Frame {
	return stompclient.New("SEND", append([]string{"destination", destination}, nameValue...)...).WithBody([]byte(body))
}

// Subscribe is a SUBSCRIBE.
func Subscribe(id, destination string, nameValue ...string) stompclient.Frame {
	return stompclient.New("SUBSCRIBE", append([]string{"id", id, "destination", destination}, nameValue...)...)
}
