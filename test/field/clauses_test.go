package field_test

import (
	"os"
	"path"
	"strings"
	"testing"
)

// clause is one sentence of the design, in short, with what shows that it holds: conformance scripts by their names, and
// Go tests, as package and function, where a script cannot say it: what happens at the same time, on several nodes, or
// with memory and sockets.
type clause struct{ text, tests string }

var clauses = map[string][]clause{
	"2, parsing": {
		{"at most 512 octets", "destination/length"},
		{"valid UTF-8", "destination/invalid-utf8"},
		{"no control characters, no DEL", "destination/control-characters destination/line-feed-1.1"},
		{"no space", "destination/blanks frame/blank-destination-value"},
		{"exactly one leading slash is stripped", "topic/spelling-no-slash destination/empty-segments"},
		{"no empty segment", "destination/empty-segments"},
		{"the first segment selects the pattern, case-sensitive", "topic/prefix-case topic/queue-apart store/apart"},
		{"dots and slashes separate the same tokens", "topic/spelling-dots queue/spelling rpc/aliases reports/fr-084-dot-and-slash"},
		{"no empty token", "destination/empty-tokens"},
		{"at most 32 tokens", "topic/deep-channel destination/depth"},
		{"no channel at all is refused", "destination/no-channel"},
		{"tokens go to NATS unchanged", "topic/odd-tokens topic/other-channels"},
		{"an unknown first segment is a topic by default, with the whole path", "topic/default-pattern"},
		{"or a queue, a stored topic, or refused, as the setting says", "destination/default-queues destination/default-store destination/default-none"},
		{"destinations of other brokers are refused by name", "destination/foreign destination/foreign-both-ways"},
		{"so are a comma and a question mark", "destination/composite"},
		{"each refusal names the fault and the destination", "destination/blanks destination/empty-segments destination/length"},
	},
	"2, patterns": {
		{"/topic and /events", "topic/spelling-alias topic/fan-out"},
		{"/topic-store, /store and /events-store", "store/aliases store/first"},
		{"/queue and /queues", "queue/spelling"},
		{"/command, /commands, /query and /queries", "rpc/aliases"},
		{"/reply: SEND only to answer", "reply/subscribe reply/send-refused"},
		{"/temp-queue and /temp-topic", "temp/queue temp/topic temp/explicit"},
		{"the subjects on NATS", "native/topic-out native/store-out native/queue-out rpc/query rpc/command"},
		{"/topic_store and /eventstore are no prefixes", "topic/not-prefixes store/not-prefixes"},
	},
	"2, wildcards": {
		{"* is one token", "topic/wildcard-star store/wildcards"},
		{"a last >, ** or # is one or more", "topic/wildcard-tail topic/wildcard-double-star topic/wildcard-hash"},
		{"* or > inside a token is refused", "destination/wildcard-in-token"},
		{"# inside a token is text", "topic/wildcard-hash"},
		{">, ** and # elsewhere than last are refused", "destination/wildcard-not-last"},
		{"in a SEND any wildcard token is refused", "destination/wildcard-send store/wildcard-send"},
		{"none on /queue, /command, /query, nor on what is local", "destination/wildcard-queue rpc/wildcard-refused responder/wildcard destination/wildcard-local"},
	},
	"2, subjects": {
		{"prefixes are configurable", "destination/other-subjects destination/other-subjects-all"},
		{"a topic in a reserved space is refused, the setting named", "destination/reserved destination/reserved-only-first destination/reserved-unprefixed"},
		{"a wildcard shows nothing of those spaces", "topic/wildcard-wide topic/wildcard-first-token"},
		{"a wide filter has a connection of its own", "test/soak.TestWideFilter"},
		{"no client text reaches a protocol line unvalidated", "destination/control-characters topic/group-bad router.TestExhaustive"},
		{"bindings onto a subject, a stream and a durable", "binding/queue binding/queue-subject binding/topic binding/store binding/store-consumer binding/request"},
		{"bindings of prefixes", "binding/prefix binding/store-prefix"},
		{"what a binding names is never made", "binding/missing binding/unusable"},
		{"stored topics: the topic behaves as /topic-store and is shown as /topic", "stored/topic stored/durable stored/is-the-store stored/transaction stored/wide"},
		{"others are as they were, wildcards get both", "stored/others-not stored/wildcard-both stored/wildcard-both-refused"},
	},
	"2, egress": {
		{"the primary prefix, whatever alias was used", "topic/spelling-alias store/aliases queue/spelling rpc/aliases responder/command"},
		{"without wildcard the subscriber's spelling", "topic/spelling-dots queue/spelling store/aliases"},
		{"with one the tokens joined by slashes", "topic/wildcard-destination store/wildcards native/wildcard"},
		{"1.0 without id: exactly its text", "subscribe/text-kept-1.0 subscribe/text-kept-1.0-elsewhere store/exact-destination-1.0 rpc/1.0-without-id"},
	},
	"2, native clients": {
		{"core publish and subscribe on a topic", "native/topic-in native/topic-out native/topic-large native/topic-order"},
		{"JetStream publish to a queue that exists, or is declared", "native/queue-in native/queue-plain-publish lifecycle/declared-queue"},
		{"a consumer that shares the durable", "native/queue-out native/queue-shared return/to-native"},
		{"stored topics, both ways", "native/store-in native/store-out"},
		{"responders and requesters", "rpc/query rpc/command responder/native-request temp/native-request temp/native-responder"},
		{"a micro service, with its errors", "rpc/service-error test/interop.TestMicroServiceAnswers"},
		{"the names of streams and durables", "queue/names-apart queue/long-name bridge.TestQueueStreamNames bridge.TestDurablesAreTheirOwners"},
	},
	"3, opening": {
		{"the highest common version, in any order", "connect/version-highest-falling connect/version-highest-mixed connect/version-highest-rising connect/version-one connect/version-newer-offered connect/version-near-misses"},
		{"spaces are tolerated", "connect/version-spaces"},
		{"missing or empty is 1.0", "connect/version-absent connect/version-empty connect/stomp-without-version"},
		{"none in common: ERROR with our versions", "connect/version-none-common"},
		{"CONNECT and STOMP", "connect/stomp-command client/stomp-py"},
		{"host is optional", "connect/host-absent connect/host-any"},
		{"what CONNECTED says", "connect/connected-headers heartbeat/offered limits/body"},
	},
	"3, escaping and lines": {
		{"as 1.2, 1.1 and 1.0 have it, both ways", "escape/all-1.2 escape/all-1.1 escape/none-1.0 escape/cross-1.1-to-1.2 escape/cross-1.0-to-1.2"},
		{"an undefined escape is an ERROR", "escape/undefined escape/undefined-in-name escape/undefined-elsewhere escape/cut-short escape/cr-in-1.1"},
		{"what a version cannot represent is left out", "escape/cross-1.2-to-1.0 escape/cross-1.2-to-1.1 escape/cross-1.1-to-1.0 escape/no-injection"},
		{"the first colon splits", "frame/raw-colons connect/raw-colons"},
		{"of repeated headers the first wins", "frame/repeated-header connect/version-repeated-header frame/content-length-repeated"},
		{"no trimming", "frame/no-trimming frame/cr-belongs-to-value"},
		{"CRLF in 1.2, bodies untouched", "frame/crlf frame/crlf-mixed connect/crlf frame/lone-cr frame/cr-is-no-line-end"},
		{"any number of EOLs between frames", "frame/eols-between frame/endless-eols connect/leading-eols connect/many-leading-eols"},
		{"octet by octet, or hundreds in one read", "frame/octet-by-octet frame/cut-anywhere frame/many-in-one-write test/field.TestReplayAgainstTheServer"},
	},
	"3, bodies": {
		{"content-length on every MESSAGE and ERROR", "frame/body-empty frame/body-to-nul error/shape"},
		{"bodies are octets", "frame/body-all-octets frame/body-1mib frame/body-4mib"},
		{"NUL inside needs a length", "frame/body-with-nul"},
		{"a wrong, negative or huge one is an ERROR", "frame/content-length-too-small frame/content-length-counts-nul frame/content-length-negative frame/content-length-huge frame/content-length-no-number frame/content-length-above-limit"},
		{"and allocates nothing", "connector/frame.TestStatedLengthAllocatesNothing test/soak.TestStatedLengths"},
		{"frames without a body are read to the NUL", "frame/content-length-on-bodyless frame/body-on-bodyless connect/stated-body"},
		{"NUL and one LF end every frame: every script reads it so", "frame/body-empty"},
	},
	"3, acknowledging": {
		{"message-id is unique and equals ack", "ack/header-in-client-modes ack/two-with-like-ids"},
		{"by id or by message-id, with or without subscription", "ack/by-id ack/by-message-id ack/id-before-1.2"},
		{"ack in client modes only, then always", "ack/header-in-client-modes ack/auto"},
		{"client is cumulative, ACK and NACK", "ack/client-cumulative ack/client-in-steps ack/client-covered-id nack/cumulative"},
		{"within its own subscription", "ack/client-own-subscription"},
		{"client-individual is exact", "ack/individual nack/individual"},
		{"auto needs none", "ack/auto ack/auto-is-default ack/auto-acked"},
		{"another value is an ERROR", "subscribe/bad-ack-mode"},
		{"a late ACK is accepted and counted", "ack/late test/field.TestLateIsCounted"},
		{"an id never issued or settled is an ERROR", "ack/unknown-id ack/twice ack/foreign-id ack/topic-unknown-id nack/unknown-id nack/old-id store/ack-unknown transaction/ack-unknown-id"},
	},
	"3, receipts": {
		{"for every frame that asks", "receipt/send receipt/subscribe receipt/unsubscribe receipt/ack receipt/nack receipt/transaction receipt/disconnect receipt/none-unasked"},
		{"in order", "receipt/order-kinds receipt/order-many receipt/before-error"},
		{"after the effect", "receipt/send receipt/ack store/receipt receipt/without-subscriber"},
		{"of SUBSCRIBE before its first MESSAGE", "receipt/subscribe-first"},
		{"of SUBSCRIBE: what is published from now on is seen", "receipt/subscribe store/new"},
		{"of DISCONNECT last, then the close", "receipt/disconnect rpc/then-disconnect"},
		{"frames before a close without DISCONNECT count", "frame/end-between-frames ack/then-disconnect frame/end-in-frame"},
	},
	"3, errors": {
		{"each is followed by a close", "error/shape reports/fr-157-connect-again"},
		{"message, body, receipt-id, content-type", "error/shape error/without-receipt error/receipt-escaped reports/q02-error-content-type"},
		{"the text names what, which header, which limit", "error/send-without-destination limits/headers limits/header-line limits/id escape/undefined"},
		{"and nothing that is inside: every script reads it so", "error/shape frame/hostile-command"},
		{"connection limit reached", "limits/connections"},
		{"cannot subscribe to RPC destinations", "rpc/subscribe-refused"},
		{"server shutting down", "lifecycle/shutdown"},
		{"slow consumer", "limits/slow-consumer-close"},
		{"queue full", "limits/queue-full"},
		{"input is drained behind it", "error/read-while-sending client/refused-goes-on error/later-frames"},
		{"RPC failures and a full prefetch are none", "rpc/receipt rpc/no-responder subscribe/prefetch-count limits/unacked"},
		{"duplicate subscription id", "subscribe/duplicate-id subscribe/duplicate-id-same-destination"},
		{"unknown subscription", "unsubscribe/unknown-id unsubscribe/twice unsubscribe/unknown-destination-1.0"},
		{"BEGIN of an open transaction, an unknown one", "transaction/begin-twice transaction/unknown transaction/unknown-1.0 transaction/ended"},
		{"a second CONNECT", "connect/second-connect connect/second-stomp"},
		{"an unknown command", "frame/unknown-command frame/server-command frame/command-case"},
		{"a missing header", "error/send-without-destination subscribe/without-destination subscribe/without-id unsubscribe/without-id ack/without-id nack/without-id transaction/without-header"},
		{"a header line without colon, or without name", "frame/header-without-colon frame/header-without-name frame/nul-in-header"},
	},
	"3, heart-beats": {
		{"the larger interval, 0 if either is 0", "heartbeat/server-beats heartbeat/server-beats-small heartbeat/dead-client-larger heartbeat/one-direction heartbeat/zero heartbeat/server-off"},
		{"malformed is 0,0", "heartbeat/malformed"},
		{"the server offers limits.heartbeat", "heartbeat/offered connect/connected-headers"},
		{"silence of twice the interval closes", "heartbeat/dead-client heartbeat/live-client reports/fr-039-late-beats"},
		{"and is logged", "test/field.TestSilentClientIsLogged"},
		{"any octet counts", "heartbeat/any-octet-counts heartbeat/frames-count"},
		{"an EOL after half the interval", "heartbeat/server-beats reports/fr-039-server-beats"},
		{"nothing in 1.0", "heartbeat/none-in-1.0"},
		{"TCP keep-alive on every socket", "test/field.TestKeepAlive"},
	},
	"3, the broker's headers": {
		{"never passed on from a SEND", "headers/broker-owned-topic headers/broker-owned-queue headers/broker-owned-case store/headers rpc/forged-error rpc/headers-out"},
		{"timestamp and expires where they are not ours", "headers/timestamp expiry/none"},
		{"nor from a native publisher", "native/broker-owned native/broker-owned-packed test/field.TestNativeHeadersAreHarmless"},
	},
	"3, WebSocket: every script but those for TCP alone runs over it too": {
		{"subprotocols", "test/field.TestReportSubprotocols connector/listen.TestSubprotocols"},
		{"messages of any size, split and joined, text and binary", "frame/body-4mib frame/octet-by-octet frame/many-in-one-write test/field.TestReportMessages"},
		{"one frame per message, text where it is UTF-8", "test/field.TestReportMessages connector/listen.TestOneFramePerMessage"},
		{"DISCONNECT's RECEIPT before the close", "receipt/disconnect"},
		{"no compression", "test/field.TestReportSubprotocols"},
		{"origins", "connector/listen.TestOrigins connector/listen.TestRefusedOriginIsAnswered test/interop.TestOrigin"},
	},
	"4.1": {
		{"one NATS subscription per subject and node", "bridge.TestFanoutSharesOneSubscription"},
		{"each subscriber once", "topic/fan-out subscribe/two-on-one-topic topic/wildcard-overlap topic/to-itself"},
		{"a bounded out queue: close or drop", "limits/slow-consumer-close limits/slow-consumer-drop"},
		{"no reader delays another", "test/soak.TestSlowTopicReader"},
		{"a SUBSCRIBE waits for one in the making", "bridge.TestSecondSubscriberOfATopicInTheMakingWaits"},
		{"x-group", "topic/group topic/group-with-native topic/group-bad disconnect/subscriptions-end"},
		{"no-local", "topic/no-local topic/no-local-false topic/no-local-origin"},
		{"ACK and NACK only move the window", "ack/topic-modes ack/topic-unacked"},
		{"a durable header or a selector is an ERROR", "topic/durable-refused topic/selector-refused"},
		{"at most once, in order, to those who are there", "topic/nothing-kept topic/order"},
	},
	"4.2": {
		{"the stream STORE and its defaults", "native/store-out bridge.TestStoreSettings"},
		{"SEND's RECEIPT after the PubAck", "store/receipt"},
		{"x-start: new, first, last, last-per-channel", "store/new store/first store/last store/last-per-channel"},
		{"x-start: seq, time, age", "store/seq store/seq-ahead store/time store/age"},
		{"RabbitMQ's x-stream-offset", "store/stream-offset"},
		{"seq is x-seq; the first message at or after it comes first", "store/seq"},
		{"a bad value is refused naming it", "store/bad-start"},
		{"a full out queue pauses", "store/full-queue-pauses"},
		{"ephemeral: client modes only move the window", "store/ack-moves-window store/ack-none-needed store/everybody"},
		{"three ways to name a durable", "durable/resume durable/name durable/activemq-name durable/activemq-misspelt durable/names-are-one durable/without-id"},
		{"the identity: client-id, else login, else empty", "durable/by-client-id durable/without-identity"},
		{"resumes, on any node", "durable/resume durable/restart bridge.TestDurableResumesOnAnotherNode"},
		{"UNSUBSCRIBE with the header deletes", "durable/delete durable/delete-by-name durable/delete-detached durable/delete-other durable/deleted-elsewhere durable/plain-unsubscribe"},
		{"changing filter or start is refused", "durable/filter-change durable/start-change durable/start"},
		{"two attachments share", "durable/shared"},
		{"x-seq and timestamp", "store/first stored/topic"},
	},
	"4.3, extras": {
		{"expires, expiration, rounded up, none, past", "expiry/expires expiry/expiration expiry/rounded-up expiry/none expiry/past expiry/bad expiry/very-late"},
		{"x-delay and ActiveMQ's, never early, over restarts", "delay/x-delay delay/amq delay/none delay/restart delay/kill delay/not-early-after-kill delay/many delay/bad"},
		{"x-dedup-id and Artemis's, scoped, for a window", "dedup/suppressed dedup/artemis dedup/scope dedup/window dedup/consumed"},
		{"a full queue is an ERROR", "limits/queue-full"},
		{"persistent and priority pass", "queue/passing-headers"},
		{"browser", "browse/shows browse/snapshot browse/empty browse/disturbs-nobody browse/odd-headers"},
		{"auto-delete, and patterns of it", "autodelete/unsubscribe autodelete/last-of-many autodelete/pattern autodelete/drop"},
		{"deleting never loses a message", "autodelete/keeps-messages autodelete/native bridge.TestDeleteWhileSending"},
		{"durable and exclusive of RabbitMQ are accepted", "foreign/rabbitmq"},
		{"exclusive and prioritised are settings of the queue", "settings/exclusive settings/exclusive-full settings/prioritized settings/policy-refused settings/exclusive-forged-pin"},
		{"activemq.maximumRedeliveries is refused", "later/maximum-redeliveries"},
		{"the headers of a MESSAGE", "queue/out-headers expiry/expires"},
	},
	"4.4": {
		{"/reply is local, without acks", "reply/subscribe reply/ack-modes reply/again reply/twice"},
		{"SEND with reply-to to an active subscription", "rpc/query rpc/several-reply-destinations"},
		{"correlation-id only when set", "rpc/correlation rpc/correlation-odd rpc/correlation-on-errors"},
		{"timeout, at most rpc.timeout", "rpc/timeout rpc/timeout-capped rpc/timeout-bad rpc/timeout-order"},
		{"one MESSAGE: the reply", "rpc/query rpc/bodies rpc/headers-back rpc/single-use"},
		{"or timeout, no responder at once, service, overload", "rpc/timeout rpc/no-responder rpc/service-error rpc/overload rpc/overload-is-per-connection"},
		{"counted over many", "test/soak.TestEachRequestIsAnsweredOnce bridge.TestRepliesRaceTheDeadline"},
		{"x-executed", "rpc/command rpc/no-responder rpc/service-error rpc/overload rpc/timeout"},
		{"a missing, foreign or inactive reply-to is an ERROR", "rpc/reply-to-missing rpc/reply-to-foreign rpc/reply-to-inactive"},
		{"inboxes are unguessable, single use, dropped", "rpc/inbox-unguessable rpc/single-use rpc/late bridge.TestInboxIsNotGuessed"},
		{"late replies are counted", "test/field.TestLateIsCounted"},
		{"requests never block", "rpc/topics-go-on test/soak.TestRequestsInFlightDelayNoTopic"},
		{"SUBSCRIBE is refused unless responders are on", "rpc/subscribe-refused responder/off"},
		{"a responder is one of a queue group", "responder/queue-group bridge.TestRespondersShareAcrossNodes"},
		{"reply-to and x-deadline", "responder/answer responder/deadline responder/token-form"},
		{"a SEND to the token answers once", "responder/answers-once responder/foreign-token responder/made-up-token responder/late-answer"},
		{"who leaves answers with an error at once", "responder/leaves-disconnect responder/leaves-drop responder/leaves-error responder/leaves-reset responder/leaves-unsubscribe responder/leaves-answered"},
	},
	"4.5": {
		{"reply-to:/temp-queue on any destination: an implicit subscription", "temp/queue temp/topic temp/on-request"},
		{"private", "temp/private temp/send-to-own"},
		{"after a SUBSCRIBE as in ActiveMQ", "temp/explicit temp/taken-over temp/subscribed-under-its-name"},
		{"the consumer sees an opaque address, and answers by SEND", "temp/opaque temp/forged temp/several-answers"},
		{"routable from any node", "bridge.TestAddressReachesItsNode"},
		{"a native reply subject in that form only", "temp/native-request native/reply-subject-hidden temp/native-reply-reserved temp/ack-subject-hidden"},
	},
	"5": {
		{"headers keep their names, content-type included", "headers/custom headers/case headers/no-content-type-made-up native/topic-in native/topic-out"},
		{"what NATS cannot carry travels packed", "native/odd-headers-out headers/odd-names headers/odd-values headers/line-ends headers/not-utf8"},
		{"every header survives, on every pattern", "test/field.TestEveryHeaderSurvivesEveryWay bridge.TestEveryHeaderSurvives"},
		{"Stomp-Headers of a client is data", "headers/stomp-headers-name native/malformed-packed native/hostile-packed"},
		{"the broker's list applies to what is unpacked", "native/broker-owned-packed"},
		{"no client header is acted on by NATS", "headers/nats-names headers/nats-names-queue headers/status dedup/native"},
		{"no header block when there is nothing to send", "native/topic-out"},
		{"Nats- headers are not shown", "native/broker-owned native/queue-transaction-clean browse/native"},
		{"traceparent and tracestate pass", "headers/trace-context"},
	},
}

// TestClausesAreHeld asserts that what is said to hold each clause is there.
func TestClausesAreHeld(t *testing.T) {
	for section, list := range clauses {
		for _, c := range list {
			if len(strings.Fields(c.tests)) == 0 {
				t.Errorf("section %s: nothing shows %q", section, c.text)
			}
			for _, test := range strings.Fields(c.tests) {
				if _, err := textOf(test); err != nil {
					t.Errorf("section %s, %q: %v", section, c.text, err)
				}
			}
		}
	}
}

// TestScriptsRunOverBothTransports counts the scripts that only TCP can run.
func TestScriptsRunOverBothTransports(t *testing.T) {
	total, tcpOnly := 0, 0
	groups, err := os.ReadDir("../conformance/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		scripts, err := os.ReadDir(path.Join("../conformance/testdata", g.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scripts {
			text, err := os.ReadFile(path.Join("../conformance/testdata", g.Name(), s.Name()))
			if err != nil {
				t.Fatal(err)
			}
			total++
			if strings.Contains(string(text), "\ntcp only\n") {
				tcpOnly++
			}
		}
	}
	if total-tcpOnly < 600 || tcpOnly > 10 {
		t.Errorf("got %d scripts, %d of them for TCP only, want at least 600 for both and at most 10", total, tcpOnly)
	}
}
