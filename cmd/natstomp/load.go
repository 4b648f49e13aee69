package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
)

// loaded is a configuration that may be served.
type loaded struct {
	config   connector.Config
	file     string   // The configuration file, empty if there is none.
	warnings []string // What the operator should change some day.
}

// loader puts the layers of the configuration together: defaults, file, environment, flags.
type loader struct {
	environ []string       // "NAME=value", as os.Environ has them.
	search  []string       // Files to look for when none is named.
	flags   *pflag.FlagSet // Made by addSettingFlags.

	keys     []key
	layers   *koanf.Koanf
	sources  map[string]source // Of the values in layers, by path; of entries also what is inside.
	faults   faults
	warnings []string
}

// searchedFiles are where the configuration is looked for when it is not named.
func searchedFiles() []string {
	return []string{"natstomp.yaml", "/etc/natstomp/natstomp.yaml"}
}

func newLoader(environ []string, flags *pflag.FlagSet) *loader {
	return &loader{
		environ: environ,
		search:  searchedFiles(),
		flags:   flags,
		keys:    configKeys(),
		layers:  koanf.New("."),
		sources: map[string]source{},
	}
}

// load returns the configuration, or faults with all that is wrong with it. named is the file that the command line
// names, if any.
func (l *loader) load(named string) (loaded, error) {
	config, file, err := l.merge(named)
	if err != nil {
		return loaded{}, err
	}
	l.check(config)
	if len(l.faults) > 0 {
		l.faults.sort()
		return loaded{}, l.faults
	}
	return loaded{config, file, l.warnings}, nil
}

// merge reads all layers and returns what they amount to, and the name of the file. What is wrong inside a layer is
// among the faults then.
func (l *loader) merge(named string) (connector.Config, string, error) {
	config := connector.DefaultConfig()
	file, err := l.loadFile(named)
	if err != nil {
		return config, "", err
	}
	for _, layer := range []func() error{l.loadKubeMQ, l.loadNATSEnv, l.loadEnv, l.loadFlags} {
		if err := layer(); err != nil {
			return config, "", fmt.Errorf("merging the configuration: %w", err)
		}
	}
	l.dropUnusedCreds()
	for _, k := range l.keys {
		if l.layers.Exists(k.path) {
			k.of(&config).Set(reflect.ValueOf(l.layers.Get(k.path)))
		}
	}
	return config, file, nil
}

// loadFile finds and reads the configuration file and returns its name.
func (l *loader) loadFile(named string) (string, error) {
	name, err := l.findFile(named)
	if err != nil || name == "" {
		return "", err
	}
	f := readFile(name, l.keys)
	l.faults = append(l.faults, f.faults...)
	for path, s := range f.lines {
		l.sources[path] = s
	}
	if err := l.layers.Load(confmap.Provider(f.values, "."), nil); err != nil {
		return "", fmt.Errorf("merging the configuration: %w", err)
	}
	return name, nil
}

func (l *loader) findFile(named string) (string, error) {
	if named == "" {
		named = l.lookup(configVariable)
	}
	if named != "" {
		return named, nil
	}
	for _, name := range l.search {
		switch _, err := os.Stat(name); {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("looking for a configuration file: %w", err)
		}
	}
	return "", nil
}

// lookup returns the value of a variable, or "".
func (l *loader) lookup(name string) string {
	for _, entry := range l.environ {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}

// fault notes what is wrong with the value that s gives to path.
func (l *loader) fault(s source, path, value, reason, hint string) {
	l.faults = append(l.faults, fault{source: s, Fault: connector.Fault{Path: path, Value: value, Reason: reason, Hint: hint}})
}

// check notes the faults that show only when all layers are merged.
func (l *loader) check(config connector.Config) {
	var invalid connector.Faults
	if errors.As(config.Validate(), &invalid) {
		unread := slices.Clone(l.faults)
		for _, f := range invalid {
			if !unread.concern(f.Path) {
				l.faults = append(l.faults, fault{source: l.sourceOf(f.Path), Fault: f})
			}
		}
	}
	l.checkListeners(config)
	l.checkFiles(config)
	l.checkAuth(config)
	l.checkPolicy(config)
}

// checkListeners wants a listener that clients can reach: the package can do without, the command cannot.
func (l *loader) checkListeners(config connector.Config) {
	c := config.Listeners
	for _, address := range []string{c.TCP.Address, c.TLS.Address, c.WS.Address, c.WSS.Address} {
		if address != "" && address != "off" {
			return
		}
	}
	l.fault(l.sourceOf("listeners.tcp.address"), "listeners.tcp.address", "",
		"is off, and so are all other STOMP listeners", "give one an address, such as 127.0.0.1:61613")
}

// checkFiles opens the files that the configuration names.
func (l *loader) checkFiles(config connector.Config) {
	for _, k := range l.keys {
		var names []string
		switch v := k.of(&config).Interface().(type) {
		case string:
			names = []string{v}
		case []string:
			names = v
		}
		for _, name := range names {
			if name == "" || !namesFile(k, name) {
				continue
			}
			if k.path == "auth.jwt.public_key_files" {
				_, name = auth.CutAlgorithm(name)
			}
			if reason := cannotRead(name); reason != "" {
				l.fault(l.sourceOf(k.path), k.path, quoted(name, false), "cannot be read: "+reason, "")
			}
		}
	}
}

// checkAuth reads the files of auth, if nothing else is wrong there.
func (l *loader) checkAuth(config connector.Config) {
	for _, f := range l.faults {
		if inside(f.Path, "auth") {
			return
		}
	}
	path := map[string]string{"users": "auth.users_file", "jwt": "auth.jwt"}[config.Auth.Mode]
	if err := auth.Check(config.AuthConfig()); err != nil {
		for reason := range strings.SplitSeq(err.Error(), "\n") {
			l.fault(l.sourceOf(path), path, "", reason, "")
		}
	}
}

// checkPolicy reads the policy and its model as a start would.
func (l *loader) checkPolicy(config connector.Config) {
	a := config.Authz
	if a.Policy == "" {
		return
	}
	text, err := os.ReadFile(a.Policy)
	if err == nil {
		err = config.CheckPolicy(a.Policy, text)
	}
	var (
		unread  *fs.PathError
		refused *authz.PolicyError
	)
	switch {
	case err == nil, errors.As(err, &unread): // A file that cannot be read is noted by checkFiles.
	case errors.As(err, &refused):
		for _, f := range refused.Faults {
			at := ""
			if f.Line > 0 {
				at = fmt.Sprintf("line %d: ", f.Line)
			}
			l.fault(l.sourceOf("authz.policy"), "authz.policy", a.Policy, at+f.Text, "")
		}
	default:
		reason := strings.TrimPrefix(err.Error(), "authz.model: ")
		l.fault(l.sourceOf("authz.model"), "authz.model", a.Model, "is no model: "+reason, "")
	}
}

// namesFile reports whether the value of k is the name of a file to read.
func namesFile(k key, value string) bool {
	switch k.path {
	case "nats.creds", "nats.nkey", "authz.model", "authz.policy":
		return true
	case "auth.jwt.jwks":
		return !strings.Contains(value, "://")
	}
	return strings.HasSuffix(k.path, "_file") || strings.HasSuffix(k.path, "_files")
}

func cannotRead(name string) (reason string) {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return reasonOf(err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "is a directory"
	}
	return ""
}

// setSource notes where the value at path comes from, also all of what is inside it.
func (l *loader) setSource(path string, s source) {
	maps.DeleteFunc(l.sources, func(at string, _ source) bool { return inside(at, path) })
	l.sources[path] = s
}

// sourceOf returns where the value at path comes from. For a default it is the nearest section of the file.
func (l *loader) sourceOf(path string) source {
	if s, ok := l.sources[path]; ok {
		return s
	}
	for at := path; at != ""; {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
		if s, ok := l.sources[at]; ok && at != "" {
			return s
		}
	}
	return source{rank: fromNowhere}
}
