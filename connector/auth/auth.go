package auth

import (
	"crypto/x509"
	"net/netip"
	"time"
)

// Credentials are what a client showed. The zero value showed nothing. Nothing of it is kept.
type Credentials struct {
	// Client is the header client-id of CONNECT. It counts in ModeNone only.
	Client string
	// Login is the header login of CONNECT. It counts in ModeNone and ModeUsers only.
	Login string
	// Passcode is the header passcode of CONNECT: a password, or a token in ModeJWT.
	Passcode string
	// Token is what Bearer found in the WebSocket handshake. It counts in ModeJWT, where Passcode is empty.
	Token string
	// Certificate is the client's certificate, which TLS has verified; nil for none.
	Certificate *x509.Certificate
	// Remote is where the client is. Checks of passwords are shared out fairly among addresses.
	Remote netip.Addr
}

// Source is what an Identity rests on.
type Source string

// The sources.
const (
	// Claimed is a name that nothing has proved: ModeNone.
	Claimed Source = "none"
	// Password is a line of the users file.
	Password Source = "users"
	// Token is a JSON Web Token.
	Token Source = "jwt"
	// Certificate is a client certificate.
	Certificate Source = "certificate"
)

// Identity is who a client is. Policy, durable subscriptions and the audit log use Name.
type Identity struct {
	// Name is as it was given, in UTF-8. CheckName holds for it unless Source is Claimed; then it may be empty too.
	Name string
	// Roles are those of the token or of the users file, without the prefix role:.
	Roles []string
	// Expires is when the session must end, leeway included; zero for never.
	Expires time.Time
	// Source is what Name rests on.
	Source Source

	line [8]byte // stands for the hash of the line of the users file that let it in
}

// RefusedText is what every refused client is told, whatever the reason.
const RefusedText = "authentication failed"

// Refused is why a client is not let in.
type Refused struct {
	// Code is one of the Code constants, for metrics.
	Code string
	// Reason is for the audit log. It holds no secret and nothing of what the client sent; it must not be shown to the
	// client, who could learn from it.
	Reason string
}

// The codes of refusals.
const (
	CodePasscode    = "passcode"    // unknown user or wrong passcode
	CodeNoToken     = "no_token"    // nothing to judge
	CodeMalformed   = "malformed"   // no token, or one that must not be accepted whatever its signature
	CodeKey         = "key"         // no key for it
	CodeSignature   = "signature"   // signed by somebody else, or altered
	CodeExpired     = "expired"     // too late
	CodeEarly       = "early"       // not valid yet
	CodeClaims      = "claims"      // for somebody else, from somebody else, or living too long
	CodeIdentity    = "identity"    // names nobody, or not whom it should
	CodeUnavailable = "unavailable" // could not be judged
)

// Error returns RefusedText, which may be shown.
func (*Refused) Error() string { return RefusedText }

func refuse(code, reason string) error { return &Refused{Code: code, Reason: reason} }
