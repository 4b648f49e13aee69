package identity_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "natstomp-identity")
	if err != nil {
		panic(err)
	}
	// A key set at an https URL is trusted as the system says; here the system trusts the authority of these tests.
	bundle := filepath.Join(dir, "authorities.pem")
	if err := os.WriteFile(bundle, rig.Authority().PEM(), 0o600); err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"SSL_CERT_FILE": bundle, "SSL_CERT_DIR": dir} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	rig.Main(m, func() error { return os.RemoveAll(dir) })
}
