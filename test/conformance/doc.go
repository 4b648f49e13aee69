// Package conformance runs scripts of STOMP frames against a server: what is sent, what must arrive and what must not.
// The scripts are the text files under testdata, one folder per group of clauses; TestConformance runs each once per
// STOMP version that it names, all of them side by side against one natstomp process, those with settings of their own
// against a process that has them.
//
// # A script
//
//	# STOMP 1.2, ACK; DESIGN 3: client acks are cumulative.
//	versions: 1.1 1.2
//
//	a connect
//	a> SUBSCRIBE id:s destination:/queue/${id} ack:client receipt:sub
//	a< RECEIPT receipt-id:sub
//	a> SEND destination:/queue/${id} | hello
//	a< MESSAGE subscription:s message-id:$m ack:* !redelivered | hello
//	a> ACK @m receipt:ack
//	a< RECEIPT receipt-id:ack
//
// It begins with a comment that names the clause, then has settings:
//
//	versions: 1.0 1.1 1.2   the versions it runs in; at least one
//	flags: --limits-x 1     arguments of the server; scripts with the same flags share a process
//	file: queues: {...}     a line of the server's configuration file, in YAML
//	alone                   a process of its own for each run
//	tcp only                the script needs what only TCP has, and is not run over WebSocket
//
// then one step per line. A step that begins with [1.0 1.1] is for those versions only. Words are separated by blanks;
// a word in double quotes is a Go string. Everything behind " | " is the body, a Go string if it begins with a quote.
// ${id} is a name that no other run uses, ${version} the version, ${i} counts the rounds of a repeat, ${300*ab} is ab
// 300 times, ${m} a captured value, ${stream:x} the name of the stream of the queue with channel x. In the name of a
// header %3A is a colon.
//
// # Steps of a STOMP connection, here a
//
//	a dial                       open a connection and send nothing
//	a connect [1.1] [name:value] dial, CONNECT with that accept-version (or the script's), expect CONNECTED
//	a> SEND name:value | body    send a frame, escaped as the version has it, nothing added
//	a> ACK @m                    @m: the headers that settle the message whose message-id was captured as m
//	a>> "octets"                 send octets in one write
//	a>1 "octets"                 send octets in one write each
//	a< MESSAGE name:value | body the next frame
//	a<[1s,3s] MESSAGE ...        the next frame, between 1 s and 3 s after the step that last sent or closed something
//	a<any MESSAGE ...            such lines in a row: that many frames in any order
//	a<skip MESSAGE               skip all frames of that command up to one of another
//	a<none 200ms                 nothing arrives for so long; prefer a step that proves it by order
//	a<beat [50ms,300ms]          a heart-beat, so long after the last octet
//	a<close                      the server closes without another frame
//	a<end [1s,3s]                the server closes, with or without an ERROR
//	a beat 100ms 5               send a heart-beat each 100 ms, 5 times
//	a half / a drop / a reset    end our side of it, close it, reset it
//
// A header that is expected: name:value exactly; name:* any value; name:~text contains it, in any case;
// name:=~regexp; name:$m any value, captured as m (if m is known, that value); !name not there; !* no others.
// The body must be exact, empty if none is written; * is any, ~text contains it.
//
// Not written but asserted for every frame: all that package stompclient asserts; message-id and destination on
// MESSAGE, message-id unique on the connection, ack equal to it where present; RECEIPT with nothing but its id; ERROR with
// its text in header and body, nothing of what is inside in it, its content-type, and then the end of the connection; no heart-beats unless the script
// sent a heart-beat header. A connection that is still open at the end of the script sends DISCONNECT with a receipt,
// whose RECEIPT and close must come next: what else had come fails the script.
//
// # Steps of native NATS clients and others
//
//	nats sub n subject [group]   subscribe, under the name n, in a queue group
//	nats> subject name:value | body    publish, flushed; @reply=x sets the reply subject
//	nats< n name:value | body    the next message of n; !* and the other forms as above; @reply:$r captures the reply
//	                             subject, !* says that there is none either
//	nats<none n                  nothing arrived at n, after a flush
//	js> subject name:value | body      publish to JetStream and wait for the PubAck
//	js< channel name:value | body      pull one message of the queue through its durable and ack it
//	js count channel 3           the queue's stream comes to hold 3 messages; 0 also if there is no stream
//	js waiting channel 3         3 pulls come to wait at the queue's durable
//	js stream name subject...    make a stream
//	js consumer stream name [subject...]  make a pull consumer with explicit acks
//	js next stream consumer name:value | body  pull one message of it and ack it
//	js remove stream consumer    remove the consumer, or the stream where that has no such consumer
//	js gone channel              the queue's stream goes
//	repeat 3 ... end             the lines between, 3 times
//	wait 100ms                   only for clauses about time
//	server restart|kill|term     end and start the server on the same store; kill it and start; SIGTERM and go on
//	server stop|start            end the server and wait for that; start it on the same store
//
// go test -run Conformance/group/name -rewrite writes what arrived into the expectations that failed, for review.
package conformance
