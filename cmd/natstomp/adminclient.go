package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	// adminTimeout bounds a request to the admin listener.
	adminTimeout = 10 * time.Second
	// adminMost bounds its answer: some hundred thousand connections.
	adminMost = 256 << 20
)

// adminFlags are those by which a command finds the admin listener of a running server: the settings of serve.
func adminFlags(c *cobra.Command, named *string) {
	c.Flags().StringVar(named, "config", "", configFlagUsage)
	addSettingFlags(c.Flags())
	c.SetUsageFunc(groupedUsage)
}

// askAdmin sends a request to the admin listener of the running server that the settings of c name, and returns the answer.
func askAdmin(c *cobra.Command, p process, named, method, path string) ([]byte, error) {
	config, err := newLoader(p.environ, c.Flags()).load(named)
	if err != nil {
		return nil, err
	}
	address, err := reachable(config.config.Listeners.Admin.Address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), adminTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the running server: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read.
	text, err := io.ReadAll(io.LimitReader(response.Body, adminMost))
	if err != nil {
		return nil, fmt.Errorf("asking the running server: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server at %s says: %s", address, strings.TrimSpace(string(text)))
	}
	return text, nil
}

// reachable is the address under which this machine reaches a listener.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", fmt.Errorf("listeners.admin.address %q is no address that can be asked: give the one of the running server", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
