package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/natstomp/natstomp/authz"
)

func newPolicyTest(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "test FILE ...",
		Short: "Hold a policy to a table of what it has to allow and to deny",
		Long: "test reads YAML files. Each names a policy, beside itself, and lists who may do what and who may not:\n\n" +
			"  policy: policy.csv\n  model: model.conf                # Only for one of your own.\n  tests:\n    - name: anna of sales          # Optional.\n" +
			"      identity: anna\n      roles: [sales]               # Those of the token; the policy may add some.\n" +
			"      allow: [read /topic/orders/*, write queues jobs]\n      deny: [read events orders.>]\n" +
			"    - {identity: 'role:sales', refused: true}   # Is not let in at all.\n\n" +
			"Destinations are understood as the configuration has them. It exits with 1 if anything is not as the table says.",
		Example: "  natstomp policy test policy.yaml",
		Args:    someFiles,
	}
	settings := addSettings(c, p)
	c.RunE = func(_ *cobra.Command, args []string) error {
		wrong := 0
		for _, file := range args {
			t := table{process: p, file: file, settings: settings}
			if err := t.run(); err != nil {
				return err
			}
			wrong += t.wrong
			if t.wrong == 0 {
				_, _ = fmt.Fprintf(p.stdout, "%s: good, %s\n", file, count(t.asked, "decision"))
			}
		}
		if wrong > 0 {
			return fmt.Errorf("%s not as the table says", count(wrong, "decision"))
		}
		return nil
	}
	return c
}

// table is a file with tests.
type table struct {
	process
	file         string
	settings     *policySettings
	asked, wrong int
}

// tableFile is what a table looks like.
type tableFile struct {
	Policy string      `yaml:"policy"`
	Model  string      `yaml:"model"`
	Tests  []tableTest `yaml:"tests"`
}

type tableTest struct {
	Name     string     `yaml:"name"`
	Identity placedText `yaml:"identity"`
	Roles    []string   `yaml:"roles"`
	Allow    []placedText
	Deny     []placedText
	Refused  bool `yaml:"refused"`
}

// placedText is a text and the line that it is in.
type placedText struct {
	text string
	line int
}

// UnmarshalYAML reads a text.
func (t *placedText) UnmarshalYAML(node *yaml.Node) error {
	t.line = node.Line
	return node.Decode(&t.text)
}

func (t *table) run() error {
	text, err := os.ReadFile(filepath.Clean(t.file))
	if err != nil {
		return fmt.Errorf("%s: cannot be read: %s", t.file, reasonOf(err))
	}
	var f tableFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	if f.Policy == "" || len(f.Tests) == 0 {
		return fmt.Errorf("%s: needs a policy and tests", t.file)
	}
	a, err := loadPolicy(t.process, t.beside(f.Policy), t.beside(f.Model))
	if err != nil {
		return err
	}
	for i := range f.Tests {
		if err := t.test(a, &f.Tests[i]); err != nil {
			return err
		}
	}
	return nil
}

// beside returns the name of a file that the table names.
func (t *table) beside(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(t.file), file)
}

// test asks one session. The error says that the table itself is wrong.
func (t *table) test(a *authz.Authorizer, test *tableTest) error {
	s, err := a.Session(test.Identity.text, test.Roles)
	if test.Refused || err != nil {
		t.asked++
		switch {
		case err == nil:
			t.show(test.Identity.line, test, "is let in, want refused")
		case !test.Refused:
			t.show(test.Identity.line, test, "is not let in: "+err.Error())
		}
		return nil
	}
	for _, side := range []struct {
		wishes []placedText
		want   bool
	}{{test.Allow, true}, {test.Deny, false}} {
		for _, text := range side.wishes {
			w, err := parseWish(strings.Fields(text.text), t.settings)
			if err != nil {
				return fmt.Errorf("%s:%d: %q: %w", t.file, text.line, text.text, err)
			}
			t.asked++
			if allowed, each := w.explain(s); allowed != side.want {
				reason := "no right is needed"
				if len(each) > 0 {
					reason = each[0].Reason
				}
				t.show(text.line, test, fmt.Sprintf("%v: got %s (%s), want %s", w, verdict(allowed), reason, verdict(side.want)))
			}
		}
	}
	return nil
}

func (t *table) show(line int, test *tableTest, what string) {
	t.wrong++
	name := test.Name
	if name == "" {
		name = test.Identity.text
	}
	_, _ = fmt.Fprintf(t.stderr, "%s:%d: %s: %s\n", t.file, line, name, what)
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}
