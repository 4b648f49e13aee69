package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// marksFile lies in the store directory.
const marksFile = "natstomp-marks.json"

// Marks says for each queue's stream up to which sequence a message may have been delivered before this start
// (DESIGN section 4.3). The embedded server keeps delivery counts in memory only.
type Marks struct {
	// Clean is true when the marks were saved by a clean stop. If not, everything stored may have been delivered.
	Clean bool `json:"clean"`
	// Delivered maps a stream to the highest sequence ever delivered from it.
	Delivered map[string]uint64 `json:"delivered"`
}

// Marks returns what the last stop of this store left behind. From this moment on the store counts as not cleanly
// stopped, until Stop. An external NATS has none.
func (b *Broker) Marks() (Marks, error) {
	if b.External() {
		return Marks{}, nil
	}
	m := b.marks
	return m, saveMarks(b.storeDir, Marks{Delivered: m.Delivered})
}

// ForgetMark takes a stream out of the marks, so that it is not missed at the next start.
func (b *Broker) ForgetMark(stream string) error {
	if b.External() {
		return nil
	}
	b.marksMu.Lock()
	defer b.marksMu.Unlock()
	if _, ok := b.marks.Delivered[stream]; !ok {
		return nil
	}
	delivered := maps.Clone(b.marks.Delivered) // The old one was handed out.
	delete(delivered, stream)
	b.marks.Delivered = delivered
	return saveMarks(b.storeDir, Marks{Delivered: delivered})
}

func loadMarks(dir string) (Marks, error) {
	data, err := os.ReadFile(filepath.Join(dir, marksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Marks{}, nil
	}
	if err != nil {
		return Marks{}, fmt.Errorf("reading the marks: %w", err)
	}
	var m Marks
	if err := json.Unmarshal(data, &m); err != nil {
		// A torn file says nothing, so everything stored may have been delivered.
		return Marks{}, nil //nolint:nilerr // see above
	}
	return m, nil
}

// saveMarks replaces the file in one step and syncs it.
func saveMarks(dir string, m Marks) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, marksFile)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("saving the marks: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("saving the marks: %w", err)
	}
	return nil
}
