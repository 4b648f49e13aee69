package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/natstomp/natstomp/connector"
)

func newConfig(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration, or an example of one",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, errors.New("a command is missing"))
			}
			return usageOf(c, unknownCommand(c, args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(newConfigShow(p), newConfigInit(p))
	return c
}

func newConfigShow(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:   "show",
		Short: "Show what serve would use, and where each value comes from",
		Long: "show reads the configuration exactly as serve does and writes it as a file, with the source of each value behind it:\n" +
			"the file and line, the variable, the flag, or default. Secrets are shown as ***. It exits with 1 if there is any fault.",
		Example: "  natstomp config show\n  natstomp config show --config natstomp.yaml --limits-body 1MiB",
		Args:    atMost(0),
	}
	c.Flags().StringVar(&named, "config", "", configFlagUsage)
	addSettingFlags(c.Flags())
	c.SetUsageFunc(groupedUsage)
	c.RunE = func(c *cobra.Command, _ []string) error {
		l := newLoader(p.environ, c.Flags())
		config, err := l.load(named)
		for _, w := range l.warnings {
			_, _ = fmt.Fprintf(p.stderr, "warning: %s\n", w)
		}
		if err != nil {
			return err
		}
		text, err := l.shown(&config.config)
		if err != nil {
			return err
		}
		_, err = p.stdout.Write(text)
		return err
	}
	return c
}

// shown writes a configuration with the sources of its values.
func (l *loader) shown(config *connector.Config) ([]byte, error) {
	var w outline
	for _, k := range l.keys {
		value, err := k.yaml(config)
		if err != nil {
			return nil, err
		}
		from := "default"
		if s, ok := l.sources[k.path]; ok {
			from = s.String()
		}
		w.line(k.path, fmt.Sprintf("%s  # %s", value, from))
	}
	return w.Bytes(), nil
}

// yaml returns the value of k on one line, without secrets.
func (k key) yaml(config *connector.Config) (string, error) {
	v := k.of(config)
	var shown any
	switch {
	case k.secret && v.Len() > 0:
		shown = hidden(v)
	case k.path == "nats.url":
		shown = withoutPasswords(v.String())
	case isEntries(k.typ) || isList(k.typ):
		if shown = v.Interface(); v.Len() == 0 {
			shown = []string{} // A nil list would be null.
		}
	default:
		shown = scalar(formatValue(v), k.typ)
	}
	var n yaml.Node
	if err := n.Encode(shown); err != nil {
		return "", fmt.Errorf("%s: %w", k.path, err)
	}
	flow(&n)
	text, err := yaml.Marshal(&n)
	if err != nil {
		return "", fmt.Errorf("%s: %w", k.path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// hidden is what is shown of a secret: as many stars as a list has entries.
func hidden(v reflect.Value) any {
	const stars = "***"
	if v.Kind() != reflect.Slice {
		return stars
	}
	list := make([]string, v.Len())
	for i := range list {
		list[i] = stars
	}
	return list
}

// withoutPasswords hides those in a list of URLs.
func withoutPasswords(urls string) string {
	list := strings.Split(urls, ",")
	for i, text := range list {
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil && u.User != nil {
			list[i] = u.Redacted()
		}
	}
	return strings.Join(list, ",")
}

// scalar keeps the type of a value that the file has without quotes.
func scalar(text string, t reflect.Type) any {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	switch {
	case t.Kind() == reflect.Bool || typeName(t) == "duration" || typeName(t) == "size" || typeName(t) == "number":
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// flow puts all of a node on one line.
func flow(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode {
		n.Style = yaml.FlowStyle
	}
	for _, child := range n.Content {
		flow(child)
	}
}

// outline writes keys below the sections that they are in.
type outline struct {
	bytes.Buffer
	section []string
}

// line writes one key with what comes behind it.
func (o *outline) line(path, rest string) {
	names := o.open(path)
	o.WriteString(indent(len(names)) + lastName(path) + ": " + rest + "\n")
}

// open writes the heads of the sections of a key that are not open, and returns the sections.
func (o *outline) open(path string) []string {
	names := strings.Split(path, ".")
	names = names[:len(names)-1]
	same := 0
	for same < len(names) && same < len(o.section) && names[same] == o.section[same] {
		same++
	}
	for i := same; i < len(names); i++ {
		o.WriteString(indent(i) + names[i] + ":\n")
	}
	o.section = names
	return names
}

// lastName is the name of a key within its section.
func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func indent(depth int) string { return strings.Repeat("  ", depth) }

func newConfigInit(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an example of a configuration file, with every key and its meaning",
		Long: "init writes a file that has every key with its meaning and default, all commented out: it is valid as it is, and means\n" +
			"what no file means. Without FILE it goes to stdout; a file that exists is left alone.",
		Example: "  natstomp config init\n  natstomp config init natstomp.yaml",
		Args:    atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := example()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				_, err = p.stdout.Write(text)
				return err
			}
			// Nobody else may read it: it is where secrets are put.
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fmt.Errorf("writing an example: %w", err)
			}
			_, err = f.Write(text)
			if err = errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("writing an example: %w", err)
			}
			_, err = fmt.Fprintf(p.stdout, "wrote %s; natstomp serve --config %s uses it\n", args[0], args[0])
			return err
		},
	}
}

// exampleWidth is how wide comments are.
const exampleWidth = 100

// example is a configuration file in which everything is commented out.
func example() ([]byte, error) {
	defaults := connector.DefaultConfig()
	var w outline
	w.WriteString("# Configuration of natstomp. Remove the # before a key, and change its value, to set it; what is not set has the value\n" +
		"# shown. natstomp check-config says what is wrong. Variables of the environment and flags win over this file.\n")
	for _, k := range configKeys() {
		value, err := k.yaml(&defaults)
		if err != nil {
			return nil, err
		}
		w.WriteString("\n")
		margin := indent(len(w.open(k.path)))
		for _, line := range wrapped(meanings[k.path], exampleWidth) {
			w.WriteString(margin + "# " + line + "\n")
		}
		w.WriteString(margin + "#" + lastName(k.path) + ": " + value + "\n")
	}
	return w.Bytes(), nil
}

// wrapped breaks a text into lines at its blanks.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
