package deploy_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

func TestMain(m *testing.M) { rig.Main(m, nil) }

const root = "../.."

// compose is as much of a compose file as ours has.
type compose struct {
	Name     string             `yaml:"name"`
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Image           string   `yaml:"image"`
	Build           string   `yaml:"build"`
	Command         []string `yaml:"command"`
	Volumes         []string `yaml:"volumes"`
	Ports           []string `yaml:"ports"`
	DependsOn       []string `yaml:"depends_on"`
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
	StopGracePeriod string   `yaml:"stop_grace_period"`
	Restart         string   `yaml:"restart"`
}

// parse reads a YAML file of the repository; keys that v does not have are faults.
func parse(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func load(t *testing.T) compose {
	t.Helper()
	var c compose
	parse(t, "docker-compose.yml", &c)
	return c
}

// settings is what other files must agree with.
type settings struct {
	AllowInsecure bool `yaml:"allow_insecure"`
	Listeners     map[string]struct {
		Address string `yaml:"address"`
	} `yaml:"listeners"`
	NATS struct {
		URL      string `yaml:"url"`
		Replicas string `yaml:"replicas"`
	} `yaml:"nats"`
	Log map[string]string `yaml:"log"`
}

// ports returns the ports of the listeners in deploy/natstomp.yaml.
func (s settings) ports(t *testing.T) map[string]string {
	t.Helper()
	ports := map[string]string{}
	for name, l := range s.Listeners {
		_, port, err := net.SplitHostPort(l.Address)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ports[name] = port
	}
	return ports
}

func loadSettings(t *testing.T) settings {
	t.Helper()
	var s settings
	parse(t, "deploy/natstomp.yaml", &s)
	return s
}

// named returns the services whose names begin so, in order.
func (c compose) named(prefix string) []string {
	var names []string
	for name := range c.Services {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestServices(t *testing.T) {
	c := load(t)
	if got := c.named("natstomp-"); len(got) != 2 {
		t.Errorf("natstomp: got %q, want two", got)
	}
	if got := c.named("nats-"); len(got) != 3 {
		t.Errorf("NATS: got %q, want three", got)
	}
	if len(c.Services) != 6 {
		t.Errorf("got %d services, want those and Prometheus", len(c.Services))
	}
	for name, s := range c.Services {
		for _, other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is none", name, other)
			}
		}
	}
	for _, name := range c.named("natstomp-") {
		s := c.Services[name]
		if s.Build != "." || !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.StopGracePeriod != "15s" {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

// TestMounts wants every file that is mounted, read-only, and every volume.
func TestMounts(t *testing.T) {
	c := load(t)
	used := map[string]bool{}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, rest, _ := strings.Cut(v, ":")
			target, mode, _ := strings.Cut(rest, ":")
			if !strings.HasPrefix(target, "/") {
				t.Errorf("%s: %q has no target", name, v)
			}
			if !strings.HasPrefix(source, "./") {
				if _, ok := c.Volumes[source]; !ok {
					t.Errorf("%s: volume %s is not declared", name, source)
				}
				if used[source] {
					t.Errorf("%s: volume %s is somebody else's too", name, source)
				}
				used[source] = true
				continue
			}
			if info, err := os.Stat(filepath.Join(root, source)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %s is no file: %v", name, source, err)
			}
			if mode != "ro" {
				t.Errorf("%s: %s can be written", name, source)
			}
		}
	}
	if len(used) != len(c.Volumes) {
		t.Errorf("got the volumes %v, of which %v are used", c.Volumes, used)
	}
}

// TestConfigurationIsAccepted runs check-config on what the natstomp services mount and name.
func TestConfigurationIsAccepted(t *testing.T) {
	c := load(t)
	program, err := testserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.named("natstomp-") {
		s := c.Services[name]
		i := slices.Index(s.Command, "--config")
		if len(s.Command) == 0 || s.Command[0] != "serve" || i < 0 {
			t.Fatalf("%s: command %q names no configuration", name, s.Command)
		}
		file := ""
		for _, v := range s.Volumes {
			if source, rest, _ := strings.Cut(v, ":"); strings.HasPrefix(rest, s.Command[i+1]+":") {
				file = source
			}
		}
		cmd := exec.CommandContext(t.Context(), program, "check-config", filepath.Join(root, file))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "configuration is valid") {
			t.Errorf("%s: check-config %s: %v\n%s", name, file, err, out)
		}
	}
}

// published is host address, host port and container port.
var published = regexp.MustCompile(`^(127\.0\.0\.1):([0-9]+):([0-9]+)$`)

// TestPorts holds the published ports to the listeners, and to the loopback address, because everybody is let in.
func TestPorts(t *testing.T) {
	c, listeners := load(t), loadSettings(t).ports(t)
	taken := map[string]string{}
	for name, s := range c.Services {
		var inside []string
		for _, p := range s.Ports {
			m := published.FindStringSubmatch(p)
			if m == nil {
				t.Errorf("%s publishes %q, not on 127.0.0.1", name, p)
				continue
			}
			if other, ok := taken[m[2]]; ok {
				t.Errorf("%s and %s publish port %s", name, other, m[2])
			}
			taken[m[2]] = name
			inside = append(inside, m[3])
		}
		if strings.HasPrefix(name, "natstomp-") {
			want := []string{listeners["tcp"], listeners["ws"], listeners["admin"]}
			if !slices.Equal(inside, want) {
				t.Errorf("%s publishes the ports %q, want %q", name, inside, want)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "\nname:")
	for port, name := range taken {
		if !regexp.MustCompile(`\b` + port + `\b`).MatchString(head) {
			t.Errorf("the head of the file does not name port %s of %s", port, name)
		}
	}
}

// TestNATS reads the configuration as the server does and holds names and ports together.
func TestNATS(t *testing.T) {
	c, s := load(t), loadSettings(t)
	options, err := server.ProcessConfigFile(filepath.Join(root, "deploy", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var urls, routes []string
	for _, name := range c.named("nats-") {
		urls = append(urls, fmt.Sprintf("nats://%s:%d", name, options.Port))
		routes = append(routes, fmt.Sprintf("nats://%s:%d", name, options.Cluster.Port))
		if command := c.Services[name].Command; !slices.Contains(command, name) {
			t.Errorf("%s has another name: %q", name, command)
		}
		if !slices.ContainsFunc(c.Services[name].Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+options.StoreDir) }) {
			t.Errorf("%s keeps nothing in %s", name, options.StoreDir)
		}
	}
	if s.NATS.URL != strings.Join(urls, ",") {
		t.Errorf("nats.url: got %s, want %s", s.NATS.URL, strings.Join(urls, ","))
	}
	if got := texts(options.Routes); !slices.Equal(got, routes) {
		t.Errorf("routes: got %q, want %q", got, routes)
	}
	if s.NATS.Replicas != strconv.Itoa(len(urls)) {
		t.Errorf("nats.replicas: got %s", s.NATS.Replicas)
	}
	if !options.JetStream || options.MaxPayload < 5<<20 {
		t.Errorf("JetStream %v, max_payload %d: a body of limits.body with headers does not fit", options.JetStream, options.MaxPayload)
	}
	version := requirement(t, "github.com/nats-io/nats-server/v2 v")
	for _, name := range c.named("nats-") {
		if got := c.Services[name].Image; got != "nats:"+version {
			t.Errorf("%s: got the image %s, want the version that is tested, %s", name, got, version)
		}
	}
}

func texts(urls []*url.URL) []string {
	list := make([]string, len(urls))
	for i, u := range urls {
		list[i] = u.String()
	}
	return list
}

// requirement returns what follows a text in go.mod, to the end of the line.
func requirement(t *testing.T, text string) string {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(mod), text)
	if !ok {
		t.Fatalf("go.mod has no %q", text)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func TestPrometheus(t *testing.T) {
	c, listeners := load(t), loadSettings(t).ports(t)
	var p struct {
		Global struct {
			ScrapeInterval string `yaml:"scrape_interval"`
		} `yaml:"global"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	parse(t, "deploy/prometheus.yml", &p)
	var want []string
	for _, name := range c.named("natstomp-") {
		want = append(want, name+":"+listeners["admin"])
	}
	if len(p.ScrapeConfigs) != 1 || len(p.ScrapeConfigs[0].StaticConfigs) != 1 || !slices.Equal(p.ScrapeConfigs[0].StaticConfigs[0].Targets, want) {
		t.Errorf("got %+v, want the targets %q", p.ScrapeConfigs, want)
	}
}

// instructions are the lines of the Dockerfile.
func instructions(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var list [][]string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "#") {
			list = append(list, fields)
		}
	}
	return list
}

func TestDockerfile(t *testing.T) {
	listeners := loadSettings(t).ports(t)
	var from, user, exposed []string
	for _, i := range instructions(t) {
		switch i[0] {
		case "FROM":
			from, user = append(from, i[1]), nil
		case "USER":
			user = i[1:]
		case "EXPOSE":
			exposed = i[1:]
		case "COPY":
			if strings.HasPrefix(i[1], "--from=") {
				continue
			}
			for _, source := range i[1 : len(i)-1] {
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Errorf("COPY: %v", err)
				}
			}
		}
	}
	if want := []string{"golang:" + requirement(t, "\ngo "), "scratch"}; !slices.Equal(from, want) {
		t.Errorf("stages: got %q, want %q", from, want)
	}
	if len(user) != 1 || !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user[0]) {
		t.Errorf("user: got %q, want numbers that are not root's", user)
	}
	if want := []string{listeners["tcp"], listeners["ws"], listeners["admin"]}; !slices.Equal(exposed, want) {
		t.Errorf("exposed: got %q, want %q", exposed, want)
	}
}

// TestProgramNeedsNothing builds the program as the Dockerfile does: an image without files cannot load a library.
func TestProgramNeedsNothing(t *testing.T) {
	var build string
	for _, i := range instructions(t) {
		if line := strings.Join(i[1:], " "); i[0] == "RUN" && strings.Contains(line, "go build") {
			build = line
		}
	}
	program := filepath.Join(t.TempDir(), "natstomp")
	if !strings.Contains(build, " -o /out/natstomp ") {
		t.Fatalf("got %q", build)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(build, "/out/natstomp", program, 1))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "VERSION=1.2.3", "GOFLAGS=-buildvcs=false", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %v: it is not static", p.Type)
		}
	}
	info, err := os.Stat(program)
	if err != nil || info.Size() > 45<<20 {
		t.Errorf("the program has %d octets, want at most 45 MiB", info.Size())
	}
	t.Logf("%d octets", info.Size())
}
