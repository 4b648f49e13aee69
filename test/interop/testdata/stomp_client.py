#!/usr/bin/python3
"""Runs one scenario with the installed stomp.py against a STOMP server.

    stomp_client.py SCENARIO HOST PORT

reads the scenario's options as one JSON object from standard input and prints
what it saw as one JSON object a line. It asserts nothing about the server, the
Go test does; it exits non-zero when it could not go on, for example because a
message it waited for did not come.
"""

import base64
import json
import os
import sys
import threading

from peer import PATIENCE, Client, Failure, emit, merge_pairs


class Run:
    """What a scenario gets: where the server is, and its options."""

    def __init__(self, host, port, options):
        self.host = host
        self.port = port
        self.options = options
        self.version = options.get("version") or "1.2"
        self.queue = "/queue/" + options.get("channel", "")
        self.topic = "/topic/" + options.get("channel", "")

    def client(self, who, **options):
        return Client(self, who, **options).open()


def connect(run):
    """One connection per variant of CONNECT."""
    for variant in run.options["variants"]:
        client = Client(run, variant["name"], variant["version"], vhost=variant.get("host"))
        client.open(
            variant.get("login"),
            variant.get("passcode"),
            use_connect=variant.get("command") == "CONNECT",
        )
        client.close()


def fan_out(run):
    """One publisher, one subscriber per version, many messages in order."""
    count = run.options["count"]
    subscribers = [run.client("sub-" + v, version=v) for v in ("1.0", "1.1", "1.2")]
    for subscriber in subscribers:
        subscriber.subscribe(run.topic, None if subscriber.version == "1.0" else "sub-0")
    publisher = run.client("publisher")
    for n in range(count - 1):
        publisher.send(run.topic, str(n))
    publisher.store(run.topic, str(count - 1))
    for subscriber in subscribers:
        subscriber.take(count)
        subscriber.close()
    publisher.close()


def ack_modes(run):
    """Ten messages, some acknowledged, and what the next consumer then gets."""
    producer = run.client("producer")
    for mode in run.options["modes"]:
        destination = run.queue + "/" + mode
        for n in range(9):
            producer.send(destination, str(n))
        producer.store(destination, "9")

        first = run.client("first:" + mode)
        first.subscribe(destination, ack=mode)
        got = first.take(10)
        if mode == "client":
            first.ack(got[4])
        elif mode == "client-individual":
            for frame in got[1::2]:
                first.ack(frame)
        first.close()

        second = run.client("second:" + mode)
        second.subscribe(destination, ack="client")
        for _ in range({"auto": 0, "client": 5, "client-individual": 5}[mode]):
            second.ack(second.next())
        producer.store(destination, "end")
        second.ack(second.next())
        second.close()
    producer.close()


def competing(run):
    """Several consumers of one queue share its messages."""
    consumers = [run.client("consumer-%d" % n) for n in range(run.options["consumers"])]
    for consumer in consumers:
        consumer.subscribe(run.queue, ack="client-individual", headers={"prefetch-count": "5"})
    seen = threading.Semaphore(0)

    def consume(consumer):
        while True:
            frame = consumer.messages.get()
            if frame is None:
                return
            consumer.settle(consumer.conn.ack, frame)
            seen.release()

    for consumer in consumers:
        threading.Thread(target=consume, args=(consumer,), daemon=True).start()
    producer = run.client("producer")
    for n in range(run.options["count"]):
        producer.send(run.queue, str(n))
    for n in range(run.options["count"]):
        if not seen.acquire(timeout=PATIENCE):
            raise Failure("only %d messages came" % n)
    for client in consumers + [producer]:
        client.close()


def nack(run):
    """A refused message comes back later, flagged and counted."""
    producer = run.client("producer")
    consumer = run.client("consumer")
    destination = run.queue + "/individual"
    producer.store(destination, "a")
    producer.store(destination, "b")
    consumer.subscribe(destination, ack="client-individual")
    a, b = consumer.take(2)
    emit("nack", "consumer")
    consumer.nack(a)
    consumer.ack(b)
    a = consumer.next()
    emit("nack", "consumer")
    consumer.nack(a)
    consumer.ack(consumer.next())
    consumer.close()

    destination = run.queue + "/cumulative"
    for body in ("c", "d", "e"):
        producer.store(destination, body)
    cumulative = run.client("cumulative")
    cumulative.subscribe(destination, ack="client")
    cumulative.nack(cumulative.take(3)[2])
    cumulative.ack(cumulative.take(3)[2])
    cumulative.close()

    for name in ("individual", "cumulative"):
        producer.store(run.queue + "/" + name, "end")
        after = run.client("after:" + name)
        after.subscribe(run.queue + "/" + name, ack="client")
        after.ack(after.next())
        after.close()
    producer.close()


def reconnect(run):
    """A consumer vanishes without DISCONNECT; another one has its messages."""
    producer = run.client("producer")
    for n in range(9):
        producer.send(run.queue, str(n))
    producer.store(run.queue, "9")
    first = run.client("first")
    first.subscribe(run.queue, ack="client-individual")
    for frame in first.take(10)[:3]:
        first.ack(frame)
    second = run.client("second")
    second.subscribe(run.queue, ack="client-individual")
    emit("dropped", "first")
    first.drop()
    for _ in range(7):
        second.ack(second.next())
    producer.store(run.queue, "end")
    second.ack(second.next())
    second.close()
    producer.close()


def receipts(run):
    """Asks for a receipt on each kind of frame, without waiting in between."""
    client = run.client("client")
    conn = client.conn

    def asked(label):
        return {"receipt": client.receipt(label)}

    conn.subscribe(run.queue, "sub-q", "client", headers=asked("subscribe"))
    conn.subscribe(run.topic, "sub-t", "auto", headers=asked("subscribe"))
    conn.send(run.queue, "stored", headers=asked("send"))
    conn.send(run.topic, "published", headers=asked("send"))
    tx = conn.begin("tx-1", headers=asked("begin"))
    conn.send(run.queue, "in a transaction", transaction=tx, headers=asked("send"))
    conn.commit(tx, headers=asked("commit"))
    conn.begin(tx, headers=asked("begin"))
    conn.abort(tx, headers=asked("abort"))
    client.ack([f for f in client.take(3) if "queue" in f.headers["destination"]][1])
    if client.version == "1.0":
        conn.unsubscribe(run.topic, "sub-t", headers=asked("unsubscribe"))
    else:
        conn.unsubscribe("sub-t", headers=asked("unsubscribe"))
    client.close()


def live(run):
    """A SUBSCRIBE's receipt means: what is published from now on is seen."""
    publisher, subscriber = run.client("publisher"), run.client("subscriber")
    for n in range(run.options["count"]):
        destination = "%s/%d" % (run.topic, n)
        subscriber.subscribe(destination, "sub-%d" % n)
        publisher.send(destination, str(n))
        subscriber.next()
    subscriber.close()
    publisher.close()


def transactions(run):
    """COMMIT shows all of a transaction, ABORT nothing, also of its ACKs."""
    producer, other, consumer = run.client("producer"), run.client("other"), run.client("consumer")
    for kind, base in (("queue", run.queue), ("topic", run.topic)):
        destination = base + "/" + kind
        consumer.subscribe(destination, "sub-" + kind)
        # Both connections use one name for their transaction.
        for client, verdict in ((producer, "commit"), (other, "abort")):
            client.conn.begin("tx-1")
            for n in range(3):
                client.store(destination, "%s-%d" % (verdict, n), {"transaction": "tx-1"})
        other.store(destination, "before")
        consumer.next()
        other.conn.abort("tx-1", receipt=other.receipt("abort"))
        producer.conn.commit("tx-1", receipt=producer.receipt("commit"))
        consumer.take(3)
        producer.store(destination, "end")
        consumer.next()

    acks = run.queue + "/acks"
    producer.store(acks, "kept")
    producer.store(acks, "taken")
    first = run.client("first")
    first.subscribe(acks, ack="client" if run.version == "1.0" else "client-individual")
    kept, taken = first.take(2)
    for frame, finish in ((kept, first.conn.abort), (taken, first.conn.commit)):
        if run.version == "1.0" and frame is taken:
            break  # 1.0 has only cumulative ACKs, which would take both.
        first.conn.begin("tx-1")
        first.ack(frame, transaction="tx-1")
        rid = first.receipt("finish")
        finish("tx-1", receipt=rid)
        first.await_receipt(rid)
    first.close()
    second = run.client("second")
    second.subscribe(acks, ack="client")
    second.ack(second.take(run.options["unacked"])[-1])
    producer.store(acks, "end")
    second.ack(second.next())
    for client in (second, producer, other, consumer):
        client.close()


def bodies(run):
    """All octets, none, and many, over a topic and a queue."""
    client = run.client("client")
    client.subscribe(run.topic, "sub-topic")
    client.subscribe(run.queue, "sub-queue")
    for destination in (run.topic, run.queue):
        for body in run.options["bodies"]:
            client.store(destination, base64.b64decode(body), content_type="application/octet-stream")
            client.next()
    client.close()


def headers(run):
    """One message with odd headers, as seen by a subscriber of each version."""
    subscribers = [run.client("sub-" + v, version=v) for v in ("1.0", "1.1", "1.2")]
    for subscriber in subscribers:
        subscriber.subscribe(run.topic)
    publisher = run.client("publisher")
    odd = merge_pairs(run.options["headers"])
    publisher.store(run.topic, "odd", odd)
    for subscriber in subscribers:
        subscriber.next()
        subscriber.close()
    for body in ("odd", "again"):
        publisher.store(run.queue, body, odd)
    consumer = run.client("consumer", version="1.2")
    consumer.subscribe(run.queue)
    consumer.take(2)
    consumer.close()
    publisher.close()


def heart_beat(run):
    """Idles with heart-beats of a second both ways, then works on."""
    client = Client(run, "client", heartbeats=(1000, 1000)).open()
    client.subscribe(run.topic)
    client.beats_in = client.beats_out = 0
    if client.gone.wait(run.options["idle_ms"] / 1000):
        raise Failure("the connection ended while idle")
    counts = {"in": client.beats_in, "out": client.beats_out}
    emit("idled", "client", counts)
    client.store(run.topic, "still here")
    client.next()
    client.close()


def errors(run):
    """One connection per fault; what the client is told, and that it ends."""
    for fault in run.options["faults"]:
        client = Client(run, fault["name"])
        if fault["verb"] == "connect":
            client.conn.version = fault["destination"]
            try:
                client.open()
            except Exception as error:
                emit("refused", client.who, text=type(error).__name__)
        else:
            client.open()
            provoke(run, client, fault)
        client.wait_for(client.failed, "ERROR")
        client.wait_for(client.gone, "the end of the connection")


def provoke(run, client, fault):
    """Does on an open connection what the server must refuse."""
    conn, verb, destination = client.conn, fault["verb"], fault.get("destination")
    if verb == "send":
        conn.send(destination, "x", receipt=client.receipt("bad"))
    elif verb == "subscribe":
        conn.subscribe(destination, "sub-0", receipt=client.receipt("bad"))
    elif verb == "ack twice":
        client.subscribe(run.queue, ack="client")
        client.store(run.queue, "x")
        frame = client.next()
        client.ack(frame)
        client.settle(conn.ack, frame, receipt=client.receipt("bad"))
    elif verb == "begin twice":
        conn.begin("tx-1")
        conn.begin("tx-1", receipt=client.receipt("bad"))
    else:
        raise Failure("no such verb: " + verb)


def publish(run):
    """Sends the given messages, each with a receipt."""
    client = run.client("publisher")
    for message in run.options["messages"]:
        client.store(
            run.options["destination"],
            base64.b64decode(message["body"] or ""),
            merge_pairs(message.get("headers") or []),
        )
    client.close()


def consume(run):
    """Takes a number of messages, acknowledges each, and leaves."""
    client = run.client("consumer")
    ack = run.options["ack"]
    client.subscribe(run.options["destination"], ack=ack, headers=run.options.get("headers"))
    emit("ready", "consumer")
    for _ in range(run.options["count"]):
        frame = client.next()
        if ack != "auto":
            client.ack(frame)
    client.close()


def request(run):
    """Asks a number of times at once, and takes the answers."""
    client = run.client("requester")
    reply = run.options["reply"]
    client.subscribe(reply)
    for n in range(run.options["count"]):
        client.send(
            run.options["destination"], str(n), {"reply-to": reply, "correlation-id": str(n)}
        )
    client.take(run.options["count"])
    client.close()


def respond(run):
    """Answers a number of requests, each with its body twice."""
    client = run.client("responder")
    client.subscribe(run.options["destination"])
    emit("ready", "responder")
    for _ in range(run.options["count"]):
        frame = client.next()
        client.send(frame.headers["reply-to"], frame.body + frame.body, {"by": "stomp.py"})
    client.close()


def hold(run):
    """Takes a number of messages and sits on them until it is killed."""
    client = Client(run, "holder", heartbeats=(1000, 1000)).open()
    client.subscribe(run.queue, ack="client-individual")
    client.take(run.options["count"])
    emit("holding", "holder")
    client.gone.wait()


SCENARIOS = (
    connect, fan_out, ack_modes, competing, nack, reconnect, receipts, live, transactions,
    bodies, headers, heart_beat, errors, publish, consume, request, respond, hold,
)


def main():
    name, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    run = Run(host, port, json.load(sys.stdin))
    scenarios = {scenario.__name__: scenario for scenario in SCENARIOS}
    try:
        scenarios[name](run)
    except Failure as failure:
        sys.stderr.write("%s: %s\n" % (name, failure))
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # stomp.py's own threads may still wait for a socket: do not join them.
    os._exit(code)
