package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector/auth"
)

func newTokenInspect(p process) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Show what a token says, without checking it",
		Long: "inspect writes the header and the claims of a token as JSON. Nothing is checked: anybody may have written them; see\n" +
			"natstomp token verify. " + tokenFrom,
		Example: "  natstomp token inspect --token-file token.txt\n  natstomp token create --client-id alice --secret-file secret.txt | natstomp token inspect",
		Args:    atMost(0),
	}
	addTokenFlag(c, &file)
	c.RunE = func(*cobra.Command, []string) error {
		text, err := p.token(file)
		if err != nil {
			return err
		}
		header, claims, err := auth.Inspect(text)
		if err != nil {
			return fmt.Errorf("the token %w", err)
		}
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Verified bool              `json:"verified"`
			Header   json.RawMessage   `json:"header"`
			Claims   json.RawMessage   `json:"claims"`
			Times    map[string]string `json:"times,omitempty"`
		}{false, header, claims, readable(claims)})
	}
	return c
}

// readable are the times among claims, as people write them.
func readable(claims json.RawMessage) map[string]string {
	var all map[string]any
	if json.Unmarshal(claims, &all) != nil {
		return nil
	}
	shown := make(map[string]string)
	for _, name := range []string{"exp", "iat", "nbf"} {
		if at, ok := all[name].(float64); ok && at >= 0 && at < 1<<38 {
			shown[name] = time.Unix(int64(at), 0).UTC().Format(time.RFC3339)
		}
	}
	return shown
}

// verifyTimeout is how long a key set may take to come.
const verifyTimeout = 15 * time.Second

func newTokenVerify(p process) *cobra.Command {
	var file, named string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check a token as the server would",
		Long: "verify reads the configuration as serve does, checks a token by it, and shows whom it names. It exits with 1 if the\n" +
			"server would refuse it, and says why, which the server tells no client. " + tokenFrom,
		Example: "  natstomp token verify --config natstomp.yaml --token-file token.txt\n" +
			"  natstomp token verify --auth-mode jwt --auth-jwt-jwks https://issuer.example/jwks.json --token-file token.txt",
		Args: atMost(0),
	}
	addTokenFlag(c, &file)
	addAuthFlags(c, &named)
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := loadAuth(p, c, named)
		if err != nil {
			return err
		}
		if mode := config.config.Auth.Mode; mode != "jwt" {
			return fmt.Errorf("auth.mode is %s: tokens are checked with jwt only", mode)
		}
		service, err := auth.New(config.config.AuthConfig())
		if err != nil {
			return fmt.Errorf("auth.jwt: %w", err)
		}
		text, err := p.token(file)
		if err != nil {
			return err
		}
		i, err := verify(c.Context(), service, text)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "identity: %s\nsession: %s\nroles: %s\nends: %s\n",
			i.Name, i.Session(), strings.Join(i.Roles, ", "), i.Expires.UTC().Format(time.RFC3339))
		return err
	}
	return c
}

// verify checks a token. The service fetches its keys meanwhile.
func verify(ctx context.Context, service *auth.Service, token string) (auth.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	done := make(chan struct{})
	go func() {
		defer close(done)
		service.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	i, err := service.Authenticate(ctx, auth.Credentials{Passcode: token})
	var refused *auth.Refused
	if errors.As(err, &refused) {
		err = fmt.Errorf("the token is refused: %s", refused.Reason)
		if fault := service.Fault(); fault != nil {
			err = fmt.Errorf("%w; %w", err, fault)
		}
	}
	return i, err
}
