package metrics

import (
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "natstomp"

// Config is what Metrics work with. All fields are required unless a default is named.
type Config struct {
	// Version is natstomp's own.
	Version string
	// Sample returns the state of the server. It is called by every scrape, also by several at once.
	Sample func() Sample
	// Reasons are all that Failed may be called with.
	Reasons []string
	// Logins are all that LoginRefused may be called with.
	Logins []string
	// Patterns are all that Timer may be called with.
	Patterns []string
	// Registerer, if not nil, gets the metrics too.
	Registerer prometheus.Registerer
}

// Metrics are those of one server. Its methods are safe for concurrent use.
type Metrics struct {
	cfg       Config
	registry  *prometheus.Registry
	failures  map[string]prometheus.Counter
	refused   map[string]prometheus.Counter
	logins    *prometheus.CounterVec
	timers    map[string]*Timer
	errors    *prometheus.CounterVec
	durations *prometheus.HistogramVec
	lifetimes prometheus.Histogram
}

// New returns Metrics that nobody sees yet but through Handler. Every series whose labels are known exists from the
// beginning, so that a rate over it has no gap.
func New(cfg Config) *Metrics {
	m := &Metrics{
		cfg:      cfg,
		registry: prometheus.NewRegistry(),
		failures: make(map[string]prometheus.Counter, len(cfg.Reasons)),
		refused:  make(map[string]prometheus.Counter, len(cfg.Logins)),
		timers:   make(map[string]*Timer, len(cfg.Patterns)),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "errors_total",
			Help: "ERROR frames, each of which ended a session, by reason.",
		}, []string{"reason"}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "auth_failures_total",
			Help: "Logins and new tokens that were refused, by reason.",
		}, []string{"reason"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "publish_duration_seconds",
			Help:                            "Time from a SEND to the confirmation that it is stored, by pattern and result.",
			Buckets:                         prometheus.ExponentialBuckets(0.0001, 2.5, 14), // 0.1 ms to 15 s.
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"pattern", "result"}),
		lifetimes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "connection_duration_seconds",
			Help:    "How long connections lasted.",
			Buckets: prometheus.ExponentialBuckets(0.1, 6, 9), // 0.1 s to 2 days.
		}),
	}
	for _, reason := range cfg.Reasons {
		m.failures[reason] = m.errors.WithLabelValues(reason)
	}
	for _, code := range cfg.Logins {
		m.refused[code] = m.logins.WithLabelValues(code)
	}
	for _, pattern := range cfg.Patterns {
		m.timers[pattern] = &Timer{
			stored: m.durations.WithLabelValues(pattern, "stored"),
			failed: m.durations.WithLabelValues(pattern, "failed"),
		}
	}
	m.registry.MustRegister(m.all()...)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{&collector{m.cfg, runtime.Version()}, m.errors, m.logins, m.durations, m.lifetimes}
}

// Register shows the metrics to the host program's Registerer, if there is one. After an error none of them is.
func (m *Metrics) Register() error {
	if m.cfg.Registerer == nil {
		return nil
	}
	for i, c := range m.all() {
		if err := m.cfg.Registerer.Register(c); err != nil {
			for _, registered := range m.all()[:i] {
				m.cfg.Registerer.Unregister(registered)
			}
			return errors.Join(errors.New("registering the metrics"), err)
		}
	}
	return nil
}

// Unregister undoes Register.
func (m *Metrics) Unregister() {
	if m.cfg.Registerer == nil {
		return
	}
	for _, c := range m.all() {
		m.cfg.Registerer.Unregister(c)
	}
}

// Handler answers scrapes with the metrics of the server, of the Go runtime and of the process.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// LoginRefused counts a login that was refused, by one of the codes of Config. An unknown code counts as nothing.
func (m *Metrics) LoginRefused(code string) {
	if c, ok := m.refused[code]; ok {
		c.Inc()
	}
}

// Failed counts an ERROR frame. An unknown reason counts as nothing.
func (m *Metrics) Failed(reason string) {
	if c, ok := m.failures[reason]; ok {
		c.Inc()
	}
}

// Ended counts a connection that has ended.
func (m *Metrics) Ended(lasted time.Duration) { m.lifetimes.Observe(lasted.Seconds()) }

// Timer measures how long the SENDs of one pattern take. The caller keeps it; it returns nil for an unknown pattern.
func (m *Metrics) Timer(pattern string) *Timer { return m.timers[pattern] }

// Timer is a pair of histograms, resolved once.
type Timer struct{ stored, failed prometheus.Observer }

// Done counts one that began at a time and ended now, with err.
func (t *Timer) Done(begun time.Time, err error) {
	took := time.Since(begun).Seconds()
	if err != nil {
		t.failed.Observe(took)
		return
	}
	t.stored.Observe(took)
}
