package testserver_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

func TestMain(m *testing.M) { rig.Main(m, nil) }

func TestKillAndRestart(t *testing.T) {
	s := testserver.Start(t)
	nc, err := nats.Connect(s.NATSURL, nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	c := rig.Connect(t, s.TCPAddr)
	if err := c.Send(stompclient.New("SEND", "destination", "/queue/a", "receipt", "r").WithBody([]byte("kept"))); err != nil {
		t.Fatal(err)
	}
	c.Next("RECEIPT")
	pid := s.PID()
	s.Kill()
	s.Kill() // Does nothing.
	if err := c.ExpectClose(20 * time.Second); err != nil {
		t.Error(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.PID() == pid {
		t.Errorf("process id: got %d again", pid)
	}
	c = rig.Connect(t, s.TCPAddr)
	if err := c.Send(stompclient.New("SUBSCRIBE", "destination", "/queue/a", "id", "1")); err != nil {
		t.Fatal(err)
	}
	if got, want := string(c.Next("MESSAGE").Body), "kept"; got != want {
		t.Errorf("body: got %q, want %q", got, want)
	}
	if got, want := strings.Count(s.Log(), "ready\n"), 2; got != want {
		t.Errorf("starts in the log: got %d, want %d", got, want)
	}
}

func TestStop(t *testing.T) {
	s, err := testserver.Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := rig.Connect(t, s.TCPAddr)
	if err := s.Terminate(); err != nil {
		t.Error(err)
	}
	if got, want := c.Next("ERROR").Get("message"), "server shutting down"; got != want {
		t.Errorf("message: got %q, want %q", got, want)
	}
	for range 2 { // The second does nothing.
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestStopReportsAnEarlyEnd(t *testing.T) {
	s, err := testserver.Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := rig.Connect(t, s.TCPAddr)
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.ExpectClose(20 * time.Second); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want it to say that the process was killed", err)
	}
}

func TestLaunchReportsWhy(t *testing.T) {
	_, err := testserver.Launch(t.TempDir(), "--limits-headers", "many")
	if err == nil || !strings.Contains(err.Error(), "limits.headers") {
		t.Errorf("got %v, want the text of the program about limits.headers", err)
	}
}
