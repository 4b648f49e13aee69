package policies_test

import (
	"testing"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/policies"
)

// TestFiles loads what is shipped; cmd/natstomp runs the tests beside it.
func TestFiles(t *testing.T) {
	if policies.Model != authz.DefaultModel {
		t.Errorf("got model.conf\n%s\nwant authz.DefaultModel\n%s", policies.Model, authz.DefaultModel)
	}
	for name, policy := range map[string]string{"open.csv": policies.Open, "example.csv": policies.Example} {
		a, err := authz.New(authz.Config{Model: policies.Model})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Load(name, []byte(policy)); err != nil {
			t.Error(err)
		}
	}
}
