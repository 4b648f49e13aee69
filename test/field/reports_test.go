package field_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// report is a rule that recordings of real clients force on a server (Q), or a fault that users of another broker or
// client reported (FR), with what holds it: conformance scripts by their names, Go tests as package and function. One
// that does not apply to natstomp says why instead.
type report struct {
	id    string
	tests string
	no    string
}

var reports = []report{
	{id: "Q1", tests: "ack/by-message-id client/perl-net-stomp client/php-extension client/stomp-php"},
	{id: "Q2", tests: "error/shape reports/q02-error-content-type"},
	{id: "Q3", tests: "client/stomp-py connect/host-absent"},
	{id: "Q4", tests: "frame/raw-colons client/gozirra client/php-extension"},
	{id: "Q5", tests: "frame/header-without-colon client/raw-line-feed"},
	{id: "Q6", tests: "client/backslash"},
	{id: "Q7", tests: "test/field.TestReportSubprotocols"},
	{id: "Q8", tests: "test/field.TestReportSubprotocols"},
	{id: "Q9", tests: "frame/octet-by-octet client/ruby-stomp client/stompit"},
	{id: "Q10", tests: "frame/many-in-one-write"},
	{id: "Q11", tests: "client/stompit"},
	{id: "Q12", tests: "test/field.TestReportMessages"},
	{id: "Q13", tests: "connect/empty-body-headers client/ruby-stomp"},
	{id: "Q14", tests: "receipt/same-id client/syslog-ng"},
	{id: "Q15", tests: "subscribe/duplicate-id client/gozirra"},
	{id: "Q16", tests: "ack/then-disconnect frame/end-between-frames client/perl-net-stomp"},
	{id: "Q17", tests: "reports/q17-comes-back test/field.TestReportClientThatComesBack"},
	{id: "Q18", tests: "client/refused-goes-on"},
	{id: "Q19", tests: "reports/fr-039-server-beats"},
	{id: "Q20", tests: "ack/header-in-client-modes client/go-stomp"},
	{id: "Q21", tests: "frame/no-blank-line"},
	{id: "Q22", tests: "error/shape reports/q02-error-content-type"},

	// codec
	{id: "FR-001", tests: "frame/content-length-on-bodyless reports/fr-001-copied-length"},
	{id: "FR-003", tests: "frame/body-with-nul reports/fr-003-nul-in-body"},
	{id: "FR-005", tests: "frame/body-all-octets reports/fr-005-gzip-body"},
	{id: "FR-006", tests: "frame/eols-between reports/fr-006-line-feeds-behind"},
	{id: "FR-008", tests: "frame/body-to-nul reports/fr-008-no-length"},
	{id: "FR-009", tests: "frame/content-length-counts-nul frame/content-length-too-small reports/fr-009-length-with-nul"},
	{id: "FR-011", tests: "frame/cut-anywhere test/field.TestReplayAgainstTheServer"},
	{id: "FR-013", tests: "frame/body-to-nul reports/fr-013-blank-lines"},
	{id: "FR-015", tests: "reports/fr-015-lone-line-feed"},
	{id: "FR-017", tests: "connect/crlf connect/not-unescaped reports/fr-017-connect-as-it-is"},
	{id: "FR-018", tests: "reports/fr-018-ids-with-colons"},
	{id: "FR-020", tests: "frame/raw-colons reports/fr-020-raw-colon-in-selector"},
	{id: "FR-021", tests: "reports/fr-021-urls"},
	{id: "FR-022", tests: "escape/subscription-id"},
	{id: "FR-024", tests: "escape/undefined client/backslash"},
	{id: "FR-025", tests: "reports/fr-025-limits-per-frame"},

	// negotiation
	{id: "FR-030", tests: "connect/host-any"},
	{id: "FR-032", tests: "reports/fr-032-closed-after-refusal"},
	{id: "FR-034", tests: "connect/host-any connect/host-absent reports/fr-034-host-or-none"},
	{id: "FR-035", tests: "connect/stomp-command reports/fr-035-stomp-command"},
	{id: "FR-037", tests: "connect/version-absent reports/fr-037-no-version"},

	// heart-beats
	{id: "FR-038", tests: "reports/fr-038-slow-timers"},
	{id: "FR-039", tests: "reports/fr-039-late-beats reports/fr-039-server-beats"},
	{id: "FR-041", tests: "reports/fr-039-late-beats"},
	{id: "FR-043", tests: "reports/fr-039-late-beats"},
	{id: "FR-044", tests: "test/field.TestReportHeartbeatsEndWithTheirConnection"},
	{id: "FR-046", tests: "heartbeat/not-asked"},
	{id: "FR-049", tests: "heartbeat/dead-client-returns reports/fr-049-half-open"},
	{id: "FR-050", no: "heart-beat:0,0 asks for silence, and a WebSocket has no pings here: a balancer that cuts idle connections is met by the client's heart-beats"},
	{id: "FR-054", tests: "connect/abandoned test/field.TestReportHeartbeatsEndWithTheirConnection"},
	{id: "FR-056", tests: "heartbeat/frames-count test/field.TestReportHeartbeatsEndWithTheirConnection"},

	// ack
	{id: "FR-058", tests: "subscribe/prefetch-count subscribe/prefetch-size reports/fr-058-fair-share reports/fr-058-default-is-finite"},
	{id: "FR-060", tests: "ack/then-unsubscribe reports/fr-060-ack-then-unsubscribe"},
	{id: "FR-063", tests: "unsubscribe/unknown-id reports/fr-063-wrong-unsubscribe"},
	{id: "FR-064", tests: "subscribe/id-again reports/fr-064-subscribe-again"},
	{id: "FR-066", tests: "ack/by-message-id reports/fr-066-either-ack test/field.TestReportCloseReason"},

	// redelivery
	{id: "FR-067", tests: "nack/redelivers nack/individual"},
	{id: "FR-068", tests: "later/maximum-redeliveries"},
	{id: "FR-069", tests: "nack/redelivers"},
	{id: "FR-070", tests: "nack/redelivers"},
	{id: "FR-071", tests: "return/drop reports/fr-071-closed-without-unsubscribe"},
	{id: "FR-074", tests: "ack/late"},
	{id: "FR-075", tests: "queue/same-message-id reports/fr-075-same-id-consumed"},
	{id: "FR-076", tests: "lifecycle/kill"},
	{id: "FR-077", tests: "reports/fr-071-closed-without-unsubscribe test/field.TestReportPendingFallsToZero"},

	// destinations
	{id: "FR-081", tests: "subscribe/empty-destination"},
	{id: "FR-082", tests: "queue/stored-first reports/fr-082-queue-made-by-send"},
	{id: "FR-083", tests: "destination/blanks"},
	{id: "FR-084", tests: "topic/spelling-dots reports/fr-084-dot-and-slash"},
	{id: "FR-086", tests: "destination/wildcard-send reports/fr-086-names-with-wildcards"},
	{id: "FR-089", tests: "topic/deep-channel reports/fr-089-three-segments"},
	{id: "FR-090", tests: "temp/queue temp/subscribed-under-its-name"},
	{id: "FR-091", tests: "reply/subscribe reports/fr-091-named-replies"},
	{id: "FR-094", tests: "durable/shared reports/fr-094-durable-twice"},
	{id: "FR-096", tests: "durable/plain-unsubscribe durable/delete reports/fr-096-delete-durable"},
	{id: "FR-097", tests: "topic/selector-refused reports/fr-097-selector"},
	{id: "FR-099", tests: "queue/passing-headers"},
	{id: "FR-101", tests: "durable/by-client-id durable/activemq-name reports/fr-101-feed-user"},

	// auth
	{id: "FR-103", tests: "reports/fr-103-refused-login test/identity.TestReportExpiredTokenInALoop"},
	{id: "FR-104", tests: "test/identity.TestReportDeniedSubscription"},
	{id: "FR-106", tests: "test/identity.TestExpiry test/identity.TestRefresh"},
	{id: "FR-107", tests: "test/identity.TestDamping test/identity.TestReportExpiredTokenInALoop"},
	{id: "FR-108", tests: "connector/auth.TestFR108OneTextForAll"},
	{id: "FR-109", tests: "connector/auth.TestFR109AudienceAsList"},
	{id: "FR-111", tests: "connector/auth.TestJ19Rotation test/identity.TestJ5UnknownKid"},
	{id: "FR-114", tests: "authz.TestNoDecisionWaitsForALoad"},
	{id: "FR-117", tests: "authz.TestChannels"},
	{id: "FR-119", tests: "authz.TestChannels"},
	{id: "FR-121", tests: "authz.TestFileChanges test/cluster.TestPolicyPush"},
	{id: "FR-122", tests: "limits/subscriptions-default connector/auth.TestFR122RefusedInALoop test/identity.TestDamping test/identity.TestReportConnectionsOfAUser"},

	// TLS
	{id: "FR-123", tests: "connector/auth.TestT4CertificateIdentity test/identity.TestClientCertificate"},
	{id: "FR-124", tests: "connector/listen.TestClientCertificates test/interop.TestReportCertificatesOfClients cmd/natstomp.TestDocumentedCommands"},

	// WebSocket
	{id: "FR-125", tests: "test/field.TestReportSubprotocols"},
	{id: "FR-126", tests: "test/field.TestReportSubprotocols"},
	{id: "FR-129", tests: "test/field.TestReportSubprotocols"},
	{id: "FR-130", tests: "reports/fr-130-no-nul test/field.TestReportMessages"},
	{id: "FR-131", tests: "test/field.TestReportMessages"},

	// limits
	{id: "FR-134", tests: "connect/endless-command connect/endless-header reports/fr-134-no-nul test/soak.TestStatedLengths"},
	{id: "FR-135", tests: "frame/content-length-above-limit limits/body reports/fr-135-large-body"},
	{id: "FR-137", tests: "connect/passcode-long connect/passcode-too-long limits/passcode test/identity.TestReportLargeToken"},
	{id: "FR-138", tests: "limits/headers limits/headers-default limits/header-line limits/header-line-default reports/fr-138-many-headers"},
	{id: "FR-139", tests: "connect/frame-too-long limits/frame-before-connect reports/fr-139-before-connect"},

	// slow consumer
	{id: "FR-141", tests: "heartbeat/dead-client-returns reports/fr-141-dead-consumer test/field.TestKeepAlive"},
	{id: "FR-142", tests: "limits/unacked subscribe/prefetch-refill reports/fr-142-at-the-cap test/field.TestReportConsumerAtItsCap"},
	{id: "FR-143", tests: "test/field.TestReportSlowSubscriber test/soak.TestSlowTopicReader test/soak.TestSlowQueueReader test/soak.TestReplay"},
	{id: "FR-145", tests: "limits/slow-consumer-close limits/slow-consumer-drop test/field.TestReportSlowSubscriber test/soak.TestSlowTopicReader"},
	{id: "FR-149", tests: "test/cluster.TestPublishTimeout test/cluster.TestSessionOverAnOutage"},

	// memory
	{id: "FR-153", tests: "test/soak.TestMemoryLimit"},
	{id: "FR-154", tests: "test/field.TestKeepAlive connector.TestKeepAliveBelowEverything"},
	{id: "FR-155", tests: "test/soak.TestChurn test/soak.TestChurnGoroutines test/soak.TestReportRoundsOfClients"},

	// reconnect
	{id: "FR-156", tests: "disconnect/without-receipt reports/fr-156-close-at-once"},
	{id: "FR-157", tests: "connect/second-connect connect/second-stomp reports/fr-157-connect-again"},
}

// TestReportsAreHeld asserts that each report has a test that is there and names it, and that no script or test names a
// report that is not in the list.
func TestReportsAreHeld(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range reports {
		if seen[r.id] {
			t.Errorf("%s is in the list twice", r.id)
		}
		seen[r.id] = true
		if (r.tests == "") == (r.no == "") {
			t.Errorf("%s: want tests, or else a reason", r.id)
		}
		for _, test := range strings.Fields(r.tests) {
			text, err := textOf(test)
			if err == nil && !names(text, r.id) {
				err = fmt.Errorf("%s does not name it", test)
			}
			if err != nil {
				t.Errorf("%s: %v", r.id, err)
			}
		}
	}
	scripts, err := os.ReadDir("../conformance/testdata/reports")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		name := "reports/" + strings.TrimSuffix(s.Name(), ".txt")
		if !slices.ContainsFunc(reports, func(r report) bool { return slices.Contains(strings.Fields(r.tests), name) }) {
			t.Errorf("%s is in no report", name)
		}
	}
}

// textOf returns the comment of a conformance script, or of a Go test, with its name.
func textOf(test string) (string, error) {
	if dir, function, ok := strings.Cut(test, ".Test"); ok {
		return commentOf(dir, "Test"+function)
	}
	text, err := os.ReadFile(path.Join("../conformance/testdata", test+".txt"))
	if err != nil {
		return "", err
	}
	comment, _, _ := strings.Cut(string(text), "\nversions:")
	return comment, nil
}

func commentOf(dir, function string) (string, error) {
	files, err := os.ReadDir(path.Join("../..", dir))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(path.Join("../..", dir, f.Name()))
		if err != nil {
			return "", err
		}
		before, _, ok := strings.Cut(string(text), "\nfunc "+function+"(")
		if !ok {
			continue
		}
		return before[strings.LastIndex(before, "\n\n")+1:], nil
	}
	return "", fmt.Errorf("no test %s in %s", function, dir)
}

// names says whether the text has the id as a whole word.
func names(text, id string) bool {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, id)
		if !ok {
			return false
		}
		if after == "" || after[0] < '0' || after[0] > '9' {
			return true
		}
		rest = after
	}
}
