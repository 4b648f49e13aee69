package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
)

// certified returns who a verified client certificate names: its first URI, else its first mail address, else its first
// DNS name, else the whole distinguished name as RFC 2253 writes it. Never a part of that, such as the common name alone:
// any authority may sign the same one for somebody else.
func certified(cert *x509.Certificate) (Identity, error) {
	var subject pkix.RDNSequence // Not cert.Subject, which sorts its parts.
	if rest, err := asn1.Unmarshal(cert.RawSubject, &subject); err != nil || len(rest) > 0 {
		return Identity{}, refuse(CodeIdentity, "certificate: no distinguished name")
	}
	name := subject.String()
	switch {
	case len(cert.URIs) > 0:
		name = cert.URIs[0].String()
	case len(cert.EmailAddresses) > 0:
		name = cert.EmailAddresses[0]
	case len(cert.DNSNames) > 0:
		name = cert.DNSNames[0]
	}
	if err := CheckName(name); err != nil {
		return Identity{}, refuse(CodeIdentity, "certificate: the name "+err.Error())
	}
	return Identity{Name: name, Expires: cert.NotAfter, Source: Certificate}, nil
}
