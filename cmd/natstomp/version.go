package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by -ldflags "-X main.version=1.2.3" when a release is built.
var version string

// build is what is known about this binary.
type build struct {
	version    string // Without a leading v; "dev" if unknown.
	commit     string // "unknown" outside a repository.
	goVersion  string
	natsServer string
	natsGo     string
}

func currentBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(version, info)
}

// buildOf takes the version that was stamped, else that of the module.
func buildOf(stamped string, info *debug.BuildInfo) build {
	b := build{version: stamped, commit: "unknown", goVersion: runtime.Version(), natsServer: "unknown", natsGo: "unknown"}
	if b.version == "" && info.Main.Version != "(devel)" {
		b.version = info.Main.Version
	}
	if b.version = strings.TrimPrefix(b.version, "v"); b.version == "" {
		b.version = "dev"
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " (modified)"
		}
	}
	b.commit += modified
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/nats-io/nats-server/v2":
			b.natsServer = d.Version
		case "github.com/nats-io/nats.go":
			b.natsGo = d.Version
		}
	}
	return b
}

func newVersion(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of natstomp and of what it is made of",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			b := currentBuild()
			_, err := fmt.Fprintf(p.stdout, "natstomp     %s\ncommit       %s\ngo           %s\nnats-server  %s\nnats.go      %s\n",
				b.version, b.commit, b.goVersion, b.natsServer, b.natsGo)
			return err
		},
	}
}
