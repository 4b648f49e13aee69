package cluster_test

import (
	"flag"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for outages far more than they compute.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "10")
	}
	// It is longer than the ack wait of the queues (30 s): what was on its way to a link that broke comes again after that.
	rig.Patience = 45 * time.Second
	rig.Main(m, nil)
}
