package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector/frame"
)

// clientFlags are those that all client commands have.
type clientFlags struct {
	url, login, passcodeFile, tokenFile, caFile, certFile, keyFile, output string
	insecure                                                               bool
	headers                                                                []string
	timeout, heartbeat                                                     time.Duration
	grace                                                                  time.Duration // for what the server says when timeout is over
}

func (f *clientFlags) add(c *cobra.Command, timeout time.Duration, timeoutUsage string) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.url, "url", "", "`URL` of the server: tcp, tls, ws or wss, with user and password before an @ if need be\n"+
		"[$"+urlVariable+", $"+kubeMQURLVariable+"] (default "+defaultURL+")")
	flags.StringVar(&f.login, "login", "", "`name` to log in by [$NATSTOMP_LOGIN]")
	flags.StringVar(&f.passcodeFile, "passcode-file", "", "`file` with the passcode [$NATSTOMP_PASSCODE, $NATSTOMP_PASSCODE_FILE]")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with a JSON Web Token, sent as the passcode [$NATSTOMP_TOKEN, $NATSTOMP_TOKEN_FILE]")
	flags.StringVar(&f.caFile, "tls-ca", "", "PEM `file` with the authorities to trust instead of the system's")
	flags.StringVar(&f.certFile, "tls-cert", "", "PEM `file` with the client certificate to show")
	flags.StringVar(&f.keyFile, "tls-key", "", "PEM `file` with the key of that certificate")
	flags.BoolVar(&f.insecure, "tls-insecure", false, "accept any certificate: whoever is in between can read and change everything")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "further header as `name:value`; may be repeated")
	flags.DurationVar(&f.timeout, "timeout", timeout, timeoutUsage)
	flags.DurationVar(&f.heartbeat, "heartbeat", 10*time.Second, "heart-beat to offer in both directions; 0 for none")
}

// addOutput adds --output to a command that shows messages.
func (f *clientFlags) addOutput(c *cobra.Command) {
	c.Flags().StringVar(&f.output, "output", "raw", "`form` of what is shown: raw, the body and a line end; or json, one object on each line")
}

// begin checks what all client commands have in common. err is what went wrong before.
func (f *clientFlags) begin(p process, err error) (target, error) {
	switch {
	case err != nil:
	case f.output != "" && f.output != "raw" && f.output != "json":
		err = fmt.Errorf("--output %q is not raw or json", f.output)
	case f.timeout < 0:
		err = fmt.Errorf("--timeout %v is negative", f.timeout)
	case f.heartbeat < 0:
		err = fmt.Errorf("--heartbeat %v is negative", f.heartbeat)
	}
	if err != nil {
		return target{}, err
	}
	return f.target(p)
}

// target puts flags, URL and environment together; each wins over those behind it.
func (f *clientFlags) target(p process) (target, error) {
	text := f.url
	for _, name := range []string{urlVariable, kubeMQURLVariable} {
		if text == "" {
			text = p.lookup(name)
		}
	}
	if text == "" {
		text = defaultURL
	}
	t, err := parseTarget(text)
	if err != nil {
		return t, err
	}
	if f.login != "" || t.login == "" {
		t.login = f.login
	}
	if t.login == "" {
		t.login = p.lookup("NATSTOMP_LOGIN")
	}
	if secret, err := f.secret(p, t.passcode == ""); err != nil {
		return t, err
	} else if secret != "" {
		t.passcode = secret
	}
	if f.insecure {
		_, _ = fmt.Fprintln(p.stderr, "natstomp: WARNING: --tls-insecure: the server's certificate is NOT checked")
	}
	return t, t.secure(f.caFile, f.certFile, f.keyFile, f.insecure)
}

// secret reads the passcode or token from where the flags say, else from where the environment does.
func (f *clientFlags) secret(p process, env bool) (string, error) {
	if f.passcodeFile != "" && f.tokenFile != "" {
		return "", errors.New("--passcode-file and --token-file are both given: a token is a passcode")
	}
	for _, file := range []string{f.passcodeFile, f.tokenFile} {
		if file != "" {
			return readSecret(file)
		}
	}
	if !env {
		return "", nil
	}
	for _, name := range []string{"NATSTOMP_PASSCODE", "NATSTOMP_TOKEN"} {
		if secret := p.lookup(name); secret != "" {
			return secret, nil
		}
		if file := p.lookup(name + "_FILE"); file != "" {
			return readSecret(file)
		}
	}
	return "", nil
}

func readSecret(file string) (string, error) {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return "", fmt.Errorf("reading the passcode: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// lookup returns a variable of the environment, or "".
func (p process) lookup(name string) string {
	for _, entry := range p.environ {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}

// ownHeaders are those that the commands set themselves.
var ownHeaders = map[string]string{
	"destination": "it is the argument", "receipt": "see --no-receipt", "ack": "see --ack", "id": "", "content-length": "",
	"transaction": "a command has none", "reply-to": "",
}

// extra returns the headers of -H. The names in allowed may be given although they are in ownHeaders.
func (f *clientFlags) extra(allowed ...string) ([]frame.Header, error) {
	headers := make([]frame.Header, 0, len(f.headers))
	for _, text := range f.headers {
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" {
			return nil, fmt.Errorf("--header %q is not name:value", text)
		}
		if why, own := ownHeaders[name]; own && !slices.Contains(allowed, name) {
			return nil, errors.New(strings.TrimSuffix("--header "+name+" cannot be given: "+why, ": "))
		}
		if !frame.Representable(frame.V12, name, value) {
			return nil, fmt.Errorf("--header %q holds a NUL", text)
		}
		headers = append(headers, header(name, value))
	}
	return headers, nil
}

func header(name, value string) frame.Header {
	return frame.Header{Name: []byte(name), Value: []byte(value)}
}

// body is the message of a command line: nothing, an argument, or for "-" all of stdin.
func (p process) body(args []string) ([]byte, error) {
	switch {
	case len(args) < 2:
		return nil, nil
	case args[1] != "-":
		return []byte(args[1]), nil
	}
	body, err := io.ReadAll(p.stdin)
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	return body, nil
}

// between wants from least to most arguments, the first of which is a destination.
func between(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return usageOf(c, errors.New("a destination is missing, such as /queue/orders"))
		}
		return atMost(most)(c, args)
	}
}
