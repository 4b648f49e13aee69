package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/synadia-io/orbit.go/natscontext"
)

// readContext reads a context of the nats command line tool, named or given as an absolute path. It refuses what
// natstomp does not honour: to connect with less than a context says would be another login than the operator's.
func readContext(name string) (natscontext.Settings, error) {
	var s natscontext.Settings
	path, err := contextPath(name)
	if err != nil {
		return s, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("there is no context %q: nats context ls shows those that exist", name)
	}
	if err != nil {
		return s, fmt.Errorf("reading the context %q: %w", name, err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("the context %q is no JSON of the nats tool: %w", name, err)
	}
	for _, refused := range []struct{ key, value, instead string }{
		{"nsc", s.NSCLookup, "it runs another program: export a credentials file with nsc and name that in creds"},
		{"user_jwt", s.UserJwt, "use creds, which holds the token and its key"},
		{"windows_cert_store", s.WinCertStoreType, "use cert and key"},
	} {
		if refused.value != "" {
			return s, fmt.Errorf("the context %q has %s, which is not supported: %s", name, refused.key, refused.instead)
		}
	}
	return s, nil
}

// contextPath is where the nats tool keeps a context.
func contextPath(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.Contains(name, "..") || strings.ContainsRune(name, filepath.Separator) {
		return "", fmt.Errorf("%q is no name of a context, nor an absolute path", name)
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		u, err := user.Current()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(u.HomeDir, ".config")
	}
	return filepath.Join(dir, "nats", "context", name+".json"), nil
}
