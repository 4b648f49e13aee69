"""One stomp.py connection as the scenarios use it.

It prints whatever the connection sees as one JSON object a line (event, who,
ms, headers, body in base64, text) and lets a scenario wait for it.
"""

import base64
import json
import os
import queue
import sys
import threading
import time

# Looking up this host's names takes seconds on some machines.
os.environ.setdefault("STOMP_SKIP_HOSTNAME_SCAN", "1")

import stomp  # noqa: E402

# How long any single wait may take, in seconds.
PATIENCE = 15.0

CONNECTIONS = {
    "1.0": stomp.StompConnection10,
    "1.1": stomp.StompConnection11,
    "1.2": stomp.StompConnection12,
}

_start = time.monotonic()
_output = threading.Lock()


class Failure(Exception):
    """The scenario could not go on."""


def emit(event, who="", headers=None, body=None, text=""):
    """Prints one event. Called by the main and by the receiver threads."""
    record = {"event": event, "who": who, "ms": (time.monotonic() - _start) * 1000}
    if headers is not None:
        record["headers"] = {str(k): str(v) for k, v in headers.items()}
    if body is not None:
        record["body"] = base64.b64encode(body).decode("ascii")
    if text:
        record["text"] = text
    line = json.dumps(record) + "\n"
    with _output:
        sys.stdout.write(line)
        sys.stdout.flush()


def merge_pairs(pairs):
    """Makes stomp.py's header map of [[name, value], ...].

    A repeated name becomes a tuple, which stomp.py writes as repeated lines.
    """
    headers = {}
    for name, value in pairs:
        if name in headers:
            old = headers[name]
            headers[name] = (old if isinstance(old, tuple) else (old,)) + (value,)
        else:
            headers[name] = value
    return headers


class Client(stomp.ConnectionListener):
    """A connection that reports everything it sees and can wait for it."""

    def __init__(self, run, who, version=None, vhost=None, heartbeats=None):
        self.who = who
        self.version = version or run.version
        options = {
            "host_and_ports": [(run.host, run.port)],
            "reconnect_attempts_max": 1,
            "auto_decode": False,
        }
        if vhost is not None:
            options["vhost"] = vhost
        if heartbeats is not None and self.version != "1.0":
            options["heartbeats"] = heartbeats
        self.conn = CONNECTIONS[self.version](**options)
        self.conn.set_listener("interop", self)
        self.connected = threading.Event()
        self.gone = threading.Event()
        self.failed = threading.Event()
        self.messages = queue.Queue()
        self.receipts = queue.Queue()
        self.asked = 0
        self.beats_in = 0
        self.beats_out = 0

    # What stomp.py calls, on its receiver thread.

    def on_connected(self, frame):
        emit("connected", self.who, frame.headers)
        self.connected.set()

    def on_message(self, frame):
        emit("message", self.who, frame.headers, frame.body)
        self.messages.put(frame)

    def on_receipt(self, frame):
        emit("receipt", self.who, frame.headers)
        self.receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame):
        emit("error", self.who, frame.headers, frame.body)
        self.failed.set()

    def on_disconnected(self):
        emit("disconnected", self.who)
        self.gone.set()
        # Whoever waits for more need not wait in vain.
        self.messages.put(None)
        self.receipts.put(None)

    def on_heartbeat(self):
        self.beats_in += 1

    def on_send(self, frame):
        if frame.cmd is None:
            self.beats_out += 1

    # What the scenarios call, on the main thread.

    def open(self, login=None, passcode=None, use_connect=False):
        options = {}
        if self.version != "1.0":
            options["with_connect_command"] = use_connect
        self.conn.connect(login, passcode, wait=True, **options)
        self.wait_for(self.connected, "CONNECTED")
        return self

    def close(self):
        """Leaves with a DISCONNECT whose receipt is awaited."""
        rid = self.receipt("disconnect")
        self.conn.disconnect(receipt=rid)
        # stomp.py closes on this receipt first and reports it afterwards.
        while self.receipts.get(timeout=PATIENCE) != rid:
            pass
        self.wait_for(self.gone, "the end of the connection")

    def drop(self):
        """Closes the socket without a DISCONNECT."""
        self.conn.transport.disconnect_socket()
        self.wait_for(self.gone, "the end of the connection")

    def receipt(self, label):
        """A receipt id of this connection's own; reported as asked for."""
        self.asked += 1
        rid = "%s-%d" % (label, self.asked)
        emit("asked", self.who, text=rid)
        return rid

    def await_receipt(self, rid):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                got = self.receipts.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise Failure("%s: no receipt %s" % (self.who, rid)) from None
            if got == rid:
                return
            if got is None:
                raise Failure("%s: ended before receipt %s" % (self.who, rid))

    def subscribe(self, destination, sub="sub-0", ack="auto", headers=None):
        """Subscribes and waits for the receipt. On 1.0, sub may be None."""
        rid = self.receipt("subscribe")
        headers = dict(headers or {}, receipt=rid)
        self.conn.subscribe(destination, sub, ack, headers=headers)
        self.await_receipt(rid)

    def send(self, destination, body, headers=None, content_type=None):
        self.conn.send(destination, body, content_type=content_type, headers=headers)

    def store(self, destination, body, headers=None, content_type=None):
        """Sends and waits for the receipt."""
        rid = self.receipt("send")
        self.send(destination, body, dict(headers or {}, receipt=rid), content_type)
        self.await_receipt(rid)

    def next(self):
        try:
            frame = self.messages.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failure("%s: no further message" % self.who) from None
        if frame is None:
            raise Failure("%s: ended before a further message" % self.who)
        return frame

    def take(self, count):
        return [self.next() for _ in range(count)]

    def ack(self, frame, transaction=None):
        """Acknowledges and waits for the receipt."""
        rid = self.receipt("ack")
        self.settle(self.conn.ack, frame, receipt=rid, transaction=transaction)
        self.await_receipt(rid)

    def nack(self, frame):
        """Refuses and waits for the receipt. There is no NACK on 1.0."""
        rid = self.receipt("nack")
        self.settle(self.conn.nack, frame, receipt=rid)
        self.await_receipt(rid)

    def settle(self, call, frame, **options):
        """Calls conn.ack or conn.nack with what names a message on this version."""
        if self.version == "1.2":
            call(frame.headers["ack"], **options)
        elif self.version == "1.1":
            call(frame.headers["message-id"], frame.headers["subscription"], **options)
        else:
            call(frame.headers["message-id"], **options)

    def wait_for(self, event, what):
        if not event.wait(PATIENCE):
            raise Failure("%s: waited in vain for %s" % (self.who, what))
