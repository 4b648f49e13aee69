package bridge

import "sync"

// makings makes each of several things at its first use. A making that failed is tried again at the next use.
type makings[T any] struct {
	mu    sync.Mutex
	known map[string]*making[T] // guarded by mu
}

type making[T any] struct {
	ready chan struct{} // closed when the making is over
	value T             // set before ready is closed, as err is
	err   error
}

// get returns the thing of that name, made by create if need be. It blocks while that takes; the first caller makes it,
// the others wait.
func (ms *makings[T]) get(name string, create func() (T, error)) (T, error) {
	ms.mu.Lock()
	m, ok := ms.known[name]
	if ok {
		ms.mu.Unlock()
		<-m.ready
		return m.value, m.err
	}
	m = &making[T]{ready: make(chan struct{})}
	if ms.known == nil {
		ms.known = map[string]*making[T]{}
	}
	ms.known[name] = m
	ms.mu.Unlock()

	m.value, m.err = create()
	if m.err != nil {
		ms.mu.Lock()
		delete(ms.known, name)
		ms.mu.Unlock()
	}
	close(m.ready)
	return m.value, m.err
}

// drop forgets the thing of that name, so that it is made at its next use.
func (ms *makings[T]) drop(name string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.known, name)
}
