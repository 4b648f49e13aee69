package listen

import "time"

// Look sets how often the files are looked at. Call it before Listen.
func (t *TLS) Look(interval time.Duration) { t.look = interval }
