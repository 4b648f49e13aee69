package rights_test

import (
	"testing"

	"github.com/natstomp/natstomp/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, nil) }
