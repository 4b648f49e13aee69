package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func newConnections(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "connections",
		Short: "List, show and end sessions of a running server",
		Long: "connections asks the running server through its admin listener, whose address it finds in the configuration that\n" +
			"serve uses. It shows the sessions of that node only.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, errors.New("a command is missing"))
			}
			return usageOf(c, unknownCommand(c, args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(newConnectionsList(p), newConnectionsShow(p), newConnectionsKick(p))
	return c
}

// session is a connection in the answer of the admin listener, as far as it is shown in a table.
type session struct {
	ID            string            `json:"id"`
	Session       string            `json:"client_id"`
	Remote        string            `json:"remote_addr"`
	Version       string            `json:"version"`
	Transport     string            `json:"transport"`
	ConnectedAt   time.Time         `json:"connected_at"`
	Subscriptions []json.RawMessage `json:"subscriptions"`
	Pending       int               `json:"pending_bytes"`
	Unacked       int               `json:"unacked"`
}

// sessions asks for all of them, each also as it came.
func sessions(c *cobra.Command, p process, named string) (list []session, raw []json.RawMessage, err error) {
	text, err := askAdmin(c, p, named, http.MethodGet, "/api/stomp/connections")
	if err != nil {
		return nil, nil, err
	}
	var answer struct {
		Data struct {
			Connections []json.RawMessage `json:"connections"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, nil, fmt.Errorf("the answer of the server cannot be read: %w", err)
	}
	raw = answer.Data.Connections
	list = make([]session, len(raw))
	for i := range raw {
		if err := json.Unmarshal(raw[i], &list[i]); err != nil {
			return nil, nil, fmt.Errorf("the answer of the server cannot be read: %w", err)
		}
	}
	return list, raw, nil
}

func newConnectionsList(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the sessions, the oldest first",
		Example: "  natstomp connections ls\n  natstomp connections ls --listeners-admin-address 127.0.0.1:8161",
		Args:    atMost(0),
	}
	adminFlags(c, &named)
	c.RunE = func(c *cobra.Command, _ []string) error {
		list, _, err := sessions(c, p, named)
		if err != nil {
			return err
		}
		return listSessions(p.stdout, list, time.Now())
	}
	return c
}

// listSessions shows sessions, a line for each.
func listSessions(w io.Writer, list []session, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ID\tSESSION\tREMOTE\tTRANSPORT\tSTOMP\tAGE\tSUBSCRIPTIONS\tPENDING\tUNACKED") // Flush tells.
	for _, s := range list {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", s.ID, s.Session, s.Remote, s.Transport, s.Version,
			now.Sub(s.ConnectedAt).Round(time.Second), len(s.Subscriptions), s.Pending, s.Unacked)
	}
	return t.Flush()
}

func newConnectionsShow(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show all that is known of one session, as JSON",
		Example: "  natstomp connections show 5c1e0f9a7b3d2846",
		Args:    exactlyID,
	}
	adminFlags(c, &named)
	c.RunE = func(c *cobra.Command, args []string) error {
		list, raw, err := sessions(c, p, named)
		if err != nil {
			return err
		}
		for i := range list {
			if list[i].ID == args[0] {
				out := json.NewEncoder(p.stdout)
				out.SetIndent("", "  ")
				return out.Encode(raw[i])
			}
		}
		return fmt.Errorf("there is no connection %s on this node", args[0])
	}
	return c
}

func newConnectionsKick(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:   "kick ID",
		Short: "End a session",
		Long: "kick ends a session with the ERROR \"disconnected by an operator\". What its client held goes to others at once.\n" +
			"The client may come again, unless its right to log in is gone.",
		Example: "  natstomp connections kick 5c1e0f9a7b3d2846",
		Args:    exactlyID,
	}
	adminFlags(c, &named)
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := askAdmin(c, p, named, http.MethodDelete, "/api/v1/connections/"+url.PathEscape(args[0])); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "%s is disconnected\n", args[0])
		return err
	}
	return c
}

// exactlyID wants the ID of a connection.
func exactlyID(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usageOf(c, fmt.Errorf("one ID is wanted, there are %d: natstomp connections ls shows them", len(args)))
}
