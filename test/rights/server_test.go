package rights_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// transports are the ways to a server.
var transports = []string{"tcp", "tls", "ws"}

// server is a server with a policy. Who a client is its login says.
type server struct {
	*rig.Server
	t      *testing.T
	policy string
}

// start starts a server with a policy.
func start(t *testing.T, policy string, change func(*connector.Config)) *server {
	t.Helper()
	s := &server{t: t, policy: rig.Put(t, "policy.csv", policy)}
	s.Server = rig.Start(t, func(cfg *connector.Config) {
		cfg.Listeners.WS.Address, cfg.Listeners.TLS.Address = "127.0.0.1:0", "127.0.0.1:0"
		cfg.Listeners.TLS.CertFile, cfg.Listeners.TLS.KeyFile = rig.Authority().Server(t)
		cfg.NATS.Embedded.Listen = "127.0.0.1:0"
		cfg.Authz.Policy = s.policy
		cfg.RPC.StompResponders = true
		if change != nil {
			change(cfg)
		}
	})
	return s
}

// load puts a policy in force.
func (s *server) load(policy string) {
	s.t.Helper()
	rig.Replace(s.t, s.policy, policy)
	if err := s.Reload(); err != nil {
		s.t.Fatal(err)
	}
}

// as opens a session of somebody.
func (s *server) as(login string) *rig.Client { s.t.Helper(); return s.over("tcp", login) }

func (s *server) over(transport, login string) *rig.Client {
	s.t.Helper()
	c := s.dial(transport)
	c.Login("login", login)
	return c
}

// dial opens a connection.
func (s *server) dial(transport string) *rig.Client {
	s.t.Helper()
	return s.Come(rig.Visit{Over: transport})
}

// native is a NATS client beside it.
func (s *server) native() *nats.Conn {
	s.t.Helper()
	nc, _ := rig.Native(s.t, "nats://"+s.Status().NATS.ClientAddress)
	return nc
}

// listen subscribes natively to a subject.
func (s *server) listen(nc *nats.Conn, subject string) *nats.Subscription {
	s.t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

// outcome reads what becomes of the last frame, which asked for the receipt "asked": nil for a receipt, else the ERROR.
// Messages that come before are returned.
func outcome(t *testing.T, c *rig.Client) (refusal string, messages []stompclient.Frame) {
	t.Helper()
	for {
		f, err := c.Read(rig.Patience)
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Command == "ERROR":
			return f.Get("message"), messages
		case f.Command == "RECEIPT" && f.Get("receipt-id") == "asked":
			return "", messages
		}
		messages = append(messages, f)
	}
}
