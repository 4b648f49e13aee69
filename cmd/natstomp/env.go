package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

// Variables that are no settings.
const (
	configVariable = "NATSTOMP_CONFIG" // Names the configuration file.
	urlVariable    = "NATSTOMP_URL"    // Where client commands connect to.
)

// natsVariables are those of the nats command line tool that count here too.
func natsVariables() map[string]string {
	return map[string]string{"NATS_URL": "nats.url", "NATS_CREDS": "nats.creds"} //nolint:gosec // Names, no credentials.
}

// loadVariables merges the variables whose names begin with prefix. translate returns the path and the value of one, or
// an empty path if it sets nothing.
func (l *loader) loadVariables(prefix string, translate func(name, text string) (path string, value any)) error {
	return l.layers.Load(env.Provider(".", env.Opt{
		Prefix: prefix,
		// In order, so that faults and warnings are.
		EnvironFunc: func() []string { return slices.Sorted(slices.Values(l.environ)) },
		TransformFunc: func(name, text string) (string, any) {
			path, value := translate(name, text)
			if path != "" {
				l.setSource(path, source{rank: fromEnv, name: name})
			}
			return path, value
		},
	}), nil)
}

// loadNATSEnv merges the variables of the nats command line tool. Empty ones count as not set there, and here.
func (l *loader) loadNATSEnv() error {
	known := natsVariables()
	return l.loadVariables("NATS_", func(name, text string) (string, any) {
		if text == "" {
			return "", nil
		}
		return known[name], text
	})
}

// dropUnusedCreds forgets NATS_CREDS where there is no NATS to use them with: they are in many a shell for other tools.
func (l *loader) dropUnusedCreds() {
	if l.sources["nats.creds"].name != "NATS_CREDS" || l.layers.String("nats.url") != "" || l.layers.String("nats.context") != "" {
		return
	}
	l.layers.Delete("nats.creds")
	l.warnings = append(l.warnings, "NATS_CREDS has no effect: natstomp embeds its NATS server unless nats.url or nats.context is set")
}

// loadEnv merges the variables of natstomp.
func (l *loader) loadEnv() error {
	e := &envLayer{loader: l, byName: map[string]key{}, byFile: map[string]key{}, given: map[string]string{}}
	for _, k := range l.keys {
		e.byName[k.env()] = k
		e.names = append(e.names, k.env())
		if k.secret {
			e.byFile[k.envFile()] = k
			e.names = append(e.names, k.envFile())
		}
	}
	return l.loadVariables(envPrefix, e.translate)
}

// envLayer reads the variables of natstomp.
type envLayer struct {
	*loader
	byName map[string]key    // Settings by their variable,
	byFile map[string]key    // secrets by the variable that names their file,
	names  []string          // and all these names.
	given  map[string]string // Variable that has set a path.
}

// translate returns the path and the value that a variable sets, or notes what is wrong with it.
func (e *envLayer) translate(name, text string) (string, any) {
	if name == configVariable || slices.Contains(clientVariables(), name) || serviceLink(name, text) {
		return "", nil
	}
	s := source{rank: fromEnv, name: name}
	k, ok := e.byName[name]
	if !ok {
		if k, ok = e.byFile[name]; !ok {
			e.fault(s, "", "", "is not a known variable", e.hint(name))
			return "", nil
		}
		if text == "" {
			return "", nil // No file is named.
		}
		if text, ok = e.secretFile(s, k, text); !ok {
			return "", nil
		}
	}
	if other, twice := e.given[k.path]; twice {
		e.fault(s, k.path, "", "is also set by "+other, "keep one of the two")
		e.faults[len(e.faults)-1].repeated = true
		return "", nil
	}
	e.given[k.path] = name
	if isEntries(k.typ) {
		e.fault(s, k.path, "", "can be set in the configuration file only", "")
		return "", nil
	}
	value, err := parseText(k.typ, text)
	if err != nil {
		e.fault(s, k.path, quoted(text, k.secret), err.Error(), "")
		return "", nil
	}
	return k.path, value
}

func (e *envLayer) hint(name string) string {
	if k, ok := e.byName[strings.TrimSuffix(name, "_FILE")]; ok {
		return "only secrets have such a variable; set " + k.env()
	}
	return didYouMean(name, e.names)
}

// secretFile returns the contents of the file with a secret. One line end after it does not belong to it; in a file
// with a list, line ends separate as commas do.
func (e *envLayer) secretFile(s source, k key, name string) (string, bool) {
	content, err := os.ReadFile(name)
	text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case err != nil:
		e.fault(s, k.path, quoted(name, false), "cannot be read: "+reasonOf(err), "")
		return "", false
	case text == "":
		e.fault(s, k.path, quoted(name, false), "is an empty file", "")
		return "", false
	}
	if k.typ == reflect.TypeFor[[]string]() {
		text = strings.NewReplacer("\r\n", ",", "\n", ",").Replace(text)
	}
	return text, true
}

// Kubernetes sets such variables in every container for each service of its namespace; for one called natstomp they
// begin like ours.
var (
	serviceHost = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?)$`)
	servicePort = regexp.MustCompile(`_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)
	serviceURL  = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// serviceLink reports whether a variable comes from Kubernetes and means nothing here.
func serviceLink(name, text string) bool {
	if serviceHost.MatchString(name) {
		return true
	}
	m := servicePort.FindStringSubmatch(name)
	return m != nil && (m[1] != "" || serviceURL.MatchString(text))
}
