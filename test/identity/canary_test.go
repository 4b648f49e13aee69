package identity_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/tokens"
)

// window is how much of a secret, wherever in it, must not be seen.
const window = 12

// wantNone looks for any part of the secrets in what was shown.
func wantNone(t *testing.T, secrets []string, shown map[string]string) {
	t.Helper()
	for _, secret := range secrets {
		for where, text := range shown {
			for i := range len(secret) - window + 1 {
				if at := strings.Index(text, secret[i:i+window]); at >= 0 {
					t.Errorf("%s shows %q: ...%s...", where, secret, text[max(0, at-200):min(len(text), at+100)])
					break
				}
			}
		}
	}
}

// parts are those of a token that are secret: who has claims and signature has it.
func parts(token string) []string {
	return strings.FieldsFunc(token, func(r rune) bool { return r == '.' })[1:]
}

// TestNoSecretOfAToken shows tokens, good and bad, in every place where a client may put one, right and wrong. Nothing that
// the server says to anybody has a part of them.
func TestNoSecretOfAToken(t *testing.T) {
	const password, hmac = "canary-of-the-embedded-nats", "HS512:canary-0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Auth.JWT.HMACSecret = hmac
		c.NATS.Embedded.Listen, c.NATS.Embedded.Users = "127.0.0.1:0", []string{"native:" + password}
	})
	signer := tokens.Signer{Algorithm: "HS512", Key: []byte(strings.TrimPrefix(hmac, "HS512:"))}
	sign := func(changes tokens.Values) string { return tokens.Sign(t, time.Now(), signer, nil, changes) }
	good, past, foreign := sign(tokens.Values{"jti": "canary-good"}), sign(tokens.Values{"jti": "canary-past", "exp": 1}), sign(tokens.Values{"jti": "canary-foreign", "sub": "bob"})
	secrets := []string{password, hmac}
	answers := map[string]string{}
	bad := []string{past, foreign[:len(foreign)-6] + "AAAAAA", strings.Replace(past, ".", "..", 1)}
	for _, token := range append(bad, good, foreign) {
		secrets = append(secrets, parts(token)...)
	}
	say := func(v rig.Visit, octets string) {
		c := g.come(v)
		if err := c.Write([]byte(octets + "DISCONNECT\nreceipt:end\n\n\x00")); err != nil {
			t.Fatal(err)
		}
		for {
			f, err := c.Read(rig.Patience)
			if err != nil {
				break
			}
			answers[fmt.Sprintf("answer %d, to %.40q", len(answers), octets)] = f.String() + string(f.Body)
		}
		_ = c.Close()
	}
	connect := "CONNECT\naccept-version:1.2\npasscode:" + good + "\n\n\x00"
	for _, token := range bad {
		say(rig.Visit{}, "CONNECT\naccept-version:1.2\npasscode:"+token+"\n\n\x00")
		say(rig.Visit{Over: "wss", Header: http.Header{"Authorization": {"Bearer " + token}}}, "CONNECT\naccept-version:1.2\n\n\x00")
		say(rig.Visit{Over: "ws", Header: http.Header{"Cookie": {cookieName + "=" + token}}}, "CONNECT\naccept-version:1.2\n\n\x00")
	}
	for _, octets := range []string{
		"CONNECT\naccept-version:1.2\npasscode:" + good[:80] + "\n" + good[80:] + "\n\n\x00",                     // A token with a line end in it.
		"CONNECT\naccept-version:1.2\npasscode:" + good[:80] + "\x00" + good[80:] + "\n\n\x00",                   // And with a NUL.
		"CONNECT\naccept-version:1.2\npasscode" + good + "\n\n\x00",                                              // Without its colon.
		"CONNECT\naccept-version:1.2\n:" + good + "\n\n\x00",                                                     // Without its name.
		"CONNECT\naccept-version:" + good + "\n\n\x00",                                                           // In the wrong header.
		"CONNECT\naccept-version:1.2\npasscode:" + strings.Repeat(good, 100) + "\n\n\x00",                        // Too long.
		"CONNECT\naccept-version:1.2\npasscode:" + good + "\ncontent-length:" + good + "\n\n\x00",                // Where a number should be.
		"CONNECT\naccept-version:1.2\npasscode:" + good + "\nheart-beat:" + good + "\n\n\x00",                    //
		"CONNECT\naccept-version:9.9\npasscode:" + good + "\n\n\x00",                                             // Refused before the login.
		"SEND\npasscode:" + good + "\n\n\x00",                                                                    // In a frame that is none of a login.
		connect + connect,                                                                                        // Twice.
		connect + "SEND\ndestination:/$auth/refresh\nreceipt:r\n\n" + good + "\x00",                              // Renewed.
		connect + "SEND\ndestination:/$auth/refresh\n\n" + past + "\x00",                                         // And not.
		connect + "SEND\ndestination:/$auth/refresh\n\n" + foreign + "\x00",                                      //
		connect + "SEND\ndestination:/$auth/refresh\ntransaction:t\n\n" + good + "\x00",                          //
		connect + "SEND\ndestination:/topic/a\npasscode:" + good + "\nx\\y:\n\n\x00",                             //
		connect + "SUBSCRIBE\nid:1\ndestination:/$auth/refresh\npasscode:" + good + "\n\n\x00",                   //
		connect + "SEND\ndestination:/queue/a\nreceipt:r\nAuthorization:Bearer " + good + "\n\n" + good + "\x00", // In a message that is stored.
	} {
		say(rig.Visit{}, octets)
	}
	c := g.come(rig.Visit{})
	c.Login("passcode", good, "login", "alice")
	for _, credentials := range [][2]string{{"native", "canary-of-somebody-else"}, {"native", password}} {
		nc, err := nats.Connect("nats://"+g.Status().NATS.ClientAddress, nats.UserInfo(credentials[0], credentials[1]))
		if (err == nil) != (credentials[1] == password) {
			t.Errorf("%s of NATS: got %v", credentials[1], err)
		}
		if err == nil {
			nc.Close()
		}
	}
	secrets = append(secrets, "canary-of-somebody-else")
	shown := g.outputs()
	wantNone(t, secrets, shown)
	wantNone(t, secrets, answers)
	if !strings.Contains(shown["/api/stomp/connections"], "alice") || !strings.Contains(shown["log"], "alice") {
		t.Error("the outputs are not what they should be")
	}
	if len(answers) < 27 {
		t.Errorf("got %d answers", len(answers))
	}
}

// TestNoSecretOfAUser: passcodes, right and wrong, and the hashes of the file.
func TestNoSecretOfAUser(t *testing.T) {
	const right, wrong = "canary-right-passcode", "canary-wrong-passcode"
	alice := line(t, "alice", right, "")
	file := rig.Put(t, "users.txt", alice)
	g := start(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.UsersFile = "users", file
		allow(t, c)
	})
	secrets := []string{right, wrong, strings.Split(alice, ":")[1]}
	g.login("login", "alice", "passcode", right)
	for _, shown := range [][]string{{"login", "alice", "passcode", wrong}, {"login", "bob", "passcode", right}, {"passcode", right}} {
		c := g.come(rig.Visit{Over: "ws"})
		c.Do("CONNECT", append(shown, "accept-version", "1.2")...)
		c.Next("ERROR")
	}
	rig.Replace(t, file, alice+strings.Replace(alice, ":", "::", 1)+alice)
	err := g.Reload()
	if err == nil {
		t.Error("a broken file is taken")
	}
	shown := g.outputs()
	shown["error of Reload"] = fmt.Sprint(err)
	wantNone(t, secrets, shown)
}
