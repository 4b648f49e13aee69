package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/natstomp/natstomp/connector"
)

// writeBlock writes what an operator wants to know after a start.
func writeBlock(w io.Writer, b build, config loaded, status connector.Status) error {
	var text strings.Builder
	line := func(name, value string) { fmt.Fprintf(&text, "  %-14s %s\n", name, value) }
	fmt.Fprintf(&text, "natstomp %s\n", b.version)
	line("configuration", config.fileText())
	for _, l := range status.Listeners {
		line(l.Name, l.Address)
	}
	n := status.NATS
	if n.Mode == "embedded" {
		line("nats", "embedded nats-server "+n.ServerVersion+", store "+n.StoreDir)
		line("nats clients", clientText(n.ClientAddress))
	} else {
		line("nats", externalText(n))
	}
	if status.Durability != "" {
		line("durability", durabilityText(status.Durability))
	}
	line("identity", identityText(status.AuthMode))
	for _, s := range status.Skipped {
		line("skipped", s)
	}
	if status.NotReady == "" {
		text.WriteString("ready\n")
	} else {
		fmt.Fprintf(&text, "not ready, trying on: %s\n", status.NotReady)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func clientText(address string) string {
	if address == "" {
		return "off"
	}
	return "nats://" + address
}

// externalText says which NATS outside it is.
func externalText(n connector.NATSStatus) string {
	if n.ServerVersion == "" {
		return "external, at " + n.Address + ", not connected"
	}
	text := "external nats-server " + n.ServerVersion + " " + n.ServerName
	if n.Cluster != "" {
		text += " of the cluster " + n.Cluster
	}
	text += ", at " + n.Address
	if n.Replicas > 0 {
		text += fmt.Sprintf(", new streams with replicas: %d", n.Replicas)
	}
	return text
}

// durabilityText says what a RECEIPT for a stored message means.
func durabilityText(level string) string {
	meaning := "stored by NATS as this says"
	if strings.HasPrefix(level, "nats;r=") {
		meaning = "stored by NATS with these replicas"
	}
	switch level {
	case "fsync":
		meaning = "on disk"
	case "os":
		meaning = "written to the operating system, which puts it on disk within about a second"
	case "memory":
		meaning = "in memory, and gone when this process ends"
	}
	return level + ": a RECEIPT means that a stored message is " + meaning
}

// identityText says who may connect.
func identityText(mode string) string {
	switch mode {
	case "none":
		return "none: anyone may connect, every login and passcode is accepted"
	case "users":
		return "users: clients log in with a name and passcode of the users file"
	case "jwt":
		return "jwt: clients log in with a signed token"
	}
	return mode
}
