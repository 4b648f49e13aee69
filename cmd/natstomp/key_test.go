package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
)

func TestKeys(t *testing.T) {
	paths := map[string]key{}
	for _, k := range configKeys() {
		paths[k.path] = k
	}
	if got := len(paths); got < 90 {
		t.Errorf("got %d keys, want at least 90", got)
	}
	for path, want := range map[string]struct {
		env, flag, typ string
		secret         bool
	}{
		"allow_insecure":              {"NATSTOMP_ALLOW_INSECURE", "allow-insecure", "bool", false},
		"listeners.tcp.address":       {"NATSTOMP_LISTENERS_TCP_ADDRESS", "listeners-tcp-address", "text", false},
		"listeners.ws.paths":          {"NATSTOMP_LISTENERS_WS_PATHS", "listeners-ws-paths", "list", false},
		"limits.body":                 {"NATSTOMP_LIMITS_BODY", "limits-body", "size", false},
		"limits.frame_before_connect": {"NATSTOMP_LIMITS_FRAME_BEFORE_CONNECT", "limits-frame-before-connect", "size", false},
		"limits.connections":          {"NATSTOMP_LIMITS_CONNECTIONS", "limits-connections", "number", false},
		"limits.heartbeat":            {"NATSTOMP_LIMITS_HEARTBEAT", "limits-heartbeat", "duration", false},
		"queues.settings":             {"NATSTOMP_QUEUES_SETTINGS", "queues-settings", "entries", false},
		"auth.jwt.hmac_secret":        {"NATSTOMP_AUTH_JWT_HMAC_SECRET", "auth-jwt-hmac-secret", "text", true},
		"nats.password":               {"NATSTOMP_NATS_PASSWORD", "nats-password", "text", true},
		"nats.token":                  {"NATSTOMP_NATS_TOKEN", "nats-token", "text", true},
		"nats.embedded.users":         {"NATSTOMP_NATS_EMBEDDED_USERS", "nats-embedded-users", "list", true},
	} {
		k, ok := paths[path]
		if !ok {
			t.Errorf("%s is no key", path)
			continue
		}
		if k.env() != want.env || k.flag() != want.flag || typeName(k.typ) != want.typ || k.secret != want.secret {
			t.Errorf("%s: got %s, %s, %s, secret %v, want %v", path, k.env(), k.flag(), typeName(k.typ), k.secret, want)
		}
		if got := k.hasFlag(); got == (want.secret || want.typ == "entries") {
			t.Errorf("%s: has a flag: %v", path, got)
		}
	}
}

// TestSecretsAreMarked finds a key whose name says that it is secret and whose field does not.
func TestSecretsAreMarked(t *testing.T) {
	for _, k := range configKeys() {
		name := k.path[strings.LastIndex(k.path, ".")+1:]
		for _, word := range []string{"password", "secret", "token", "passphrase", "seed"} {
			if slices.Contains(strings.Split(name, "_"), word) && k.typ.Kind() == reflect.String && !k.secret {
				t.Errorf("%s is not marked as secret", k.path)
			}
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	variables := map[string]string{configVariable: "the file", urlVariable: "the URL"}
	flags := map[string]string{"config": "the file", "help": "help"}
	for short, long := range shortFlags() {
		flags[short] = long
	}
	take := func(names map[string]string, name, path string) {
		if other, ok := names[name]; ok {
			t.Errorf("%s stands for %s and for %s", name, other, path)
		}
		names[name] = path
	}
	for _, k := range configKeys() {
		take(variables, k.env(), k.path)
		if k.secret {
			take(variables, k.envFile(), k.path)
		}
		take(flags, k.flag(), k.path)
	}
	for name := range variables {
		if serviceLink(name, "tcp://10.0.0.1:1") {
			t.Errorf("%s would be ignored as one of Kubernetes", name)
		}
	}
}

// sample returns a text for a setting of type t, and the value that it stands for. None is a default.
func sample(t *testing.T, typ reflect.Type) (string, any) {
	t.Helper()
	switch typ {
	case reflect.TypeFor[string]():
		return "sample: text", "sample: text"
	case reflect.TypeFor[connector.Secret]():
		return "012: secret", connector.Secret("012: secret")
	case reflect.TypeFor[bool]():
		return "true", true
	case reflect.TypeFor[int]():
		return "4711", 4711
	case reflect.TypeFor[time.Duration]():
		return "47m11s", 47*time.Minute + 11*time.Second
	case reflect.TypeFor[connector.Size]():
		return "47KiB", connector.Size(47 << 10)
	case reflect.TypeFor[[]string]():
		return "a,b c,d", []string{"a", "b c", "d"}
	}
	t.Fatalf("there is no sample of type %v", typ)
	return "", nil
}

// TestEachKeyInEachWay sets every key by the file, by its variable, by the file of its variable and by its flag.
func TestEachKeyInEachWay(t *testing.T) {
	for _, k := range configKeys() {
		if isEntries(k.typ) {
			continue
		}
		text, want := sample(t, k.typ)
		ways := map[string]setting{
			"file":     {file: yamlOf(k, text)},
			"variable": {environ: []string{k.env() + "=" + text}},
			"flag":     {args: []string{"--" + k.flag() + "=" + text}},
		}
		if k.secret {
			delete(ways, "flag")
			ways["secret file"] = setting{environ: []string{k.envFile() + "=" + writeFile(t, text+"\n")}}
		}
		for way, s := range ways {
			l := s.loader(t)
			config, _, err := l.merge(s.write(t))
			if err != nil || len(l.faults) > 0 {
				t.Errorf("%s by %s: %v %v", k.path, way, err, l.faults)
				continue
			}
			if got := k.of(&config).Interface(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s by %s: got %#v, want %#v", k.path, way, got, want)
			}
			defaults := connector.DefaultConfig()
			k.of(&config).Set(k.of(&defaults))
			if !reflect.DeepEqual(config, defaults) {
				t.Errorf("%s by %s changes other keys too", k.path, way)
			}
		}
	}
}

// yamlOf returns a file with one key.
func yamlOf(k key, text string) string {
	var b strings.Builder
	parts := strings.Split(k.path, ".")
	for i, part := range parts[:len(parts)-1] {
		b.WriteString(strings.Repeat("  ", i) + part + ":\n")
	}
	indent := strings.Repeat("  ", len(parts)-1)
	switch {
	case isList(k.typ):
		text = "[" + text + "]"
	case strings.Contains(text, ": "):
		text = `"` + text + `"`
	}
	b.WriteString(indent + parts[len(parts)-1] + ": " + text + "\n")
	return b.String()
}
