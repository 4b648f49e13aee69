/**
 * One STOMP connection as the scenarios use it, whatever the library.
 *
 * It reports all that the connection sees as events (event, who, ms, headers, body in base64, text) and lets a scenario
 * wait for it. What is particular to a library is in the class that extends Peer.
 */

/** How long any single wait may take, in milliseconds. */
export const PATIENCE = 15000;

/** The scenario could not go on. */
export class Failure extends Error {}

/** Octets as base64, in Node and in browsers. */
export function toBase64(octets) {
  let text = "";
  for (let at = 0; at < octets.length; at += 8192) {
    text += String.fromCharCode(...octets.subarray(at, at + 8192));
  }
  return btoa(text);
}

/** The octets of base64; none of null, as Go writes an empty slice that was never made. */
export function fromBase64(text) {
  return Uint8Array.from(atob(text ?? ""), (c) => c.charCodeAt(0));
}

/** The text that the octets are, or undefined where they are not UTF-8. */
export function asText(octets) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(octets);
  } catch {
    return undefined;
  }
}

/** A header object of [[name, value], ...]. Of a repeated name it has the first, since objects hold one. */
export function headersOf(pairs) {
  return Object.fromEntries((pairs ?? []).slice().reverse());
}

/** The promise, or a Failure when it takes too long. */
export function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Failure(`waited in vain for ${what}`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Something that happens once. */
export class Moment {
  constructor() {
    this.past = false;
    this.promise = new Promise((resolve) => (this.resolve = resolve));
  }

  come() {
    this.past = true;
    this.resolve();
  }
}

/** What came in, in its order, for one reader. After its end it holds no reader up. */
class Mailbox {
  constructor(what) {
    this.what = what;
    this.items = [];
    this.ended = false;
    this.wake = () => {};
  }

  put(item) {
    this.items.push(item);
    this.wake();
  }

  end() {
    this.ended = true;
    this.wake();
  }

  async next() {
    while (this.items.length === 0) {
      if (this.ended) {
        throw new Failure(`ended before a further ${this.what}`);
      }
      await within(new Promise((resolve) => (this.wake = resolve)), `a further ${this.what}`);
    }
    return this.items.shift();
  }
}

/**
 * A connection. A library's class implements
 *
 *   dial(variant)                                    begins to connect
 *   transmit(destination, octets, headers, receipt)  SEND
 *   join(destination, ack, headers, receipt)         SUBSCRIBE; returns what part takes
 *   expect(id)                                       takes the messages of a subscription that the server makes
 *   part(subscription, receipt)                      UNSUBSCRIBE
 *   settle(verb, message, headers, receipt)          "ack" or "nack", of what received was given as message.native
 *   begin(transaction)                               BEGIN
 *   finish(verb, transaction, receipt)               "commit" or "abort"
 *   leave(receipt)                                   DISCONNECT; ended is called when the connection has
 *   cut()                                            ends the connection without a DISCONNECT
 *
 * and calls connected, received, receipted, failed, refusedBy and ended. A receipt is the label under which receipted
 * is to be called, or undefined where none is asked for.
 */
export class Peer {
  /** The kinds of frame that a program with this library can ask a receipt for. */
  static receipts = new Set(["subscribe", "send", "commit", "abort", "ack", "unsubscribe", "disconnect"]);

  constructor(run, who, options = {}) {
    this.run = run;
    this.who = who;
    this.version = options.version ?? run.version;
    this.heartBeat = options.heartBeat; // Undefined: what the library does by itself, or should.
    this.open = new Moment();
    this.gone = new Moment();
    this.error = new Moment();
    this.messages = new Mailbox("message");
    this.replies = new Mailbox("receipt");
    this.asked = 0;
    this.beatsIn = 0;
    this.beatsOut = 0;
  }

  emit(event, more) {
    this.run.emit(event, this.who, more);
  }

  // What a library's class calls.

  connected(headers) {
    this.emit("connected", { headers });
    this.open.come();
  }

  /** kind is of the WebSocket message, text or binary. */
  received(message, kind) {
    this.emit("message", { headers: message.headers, body: message.body, text: kind });
    this.messages.put(message);
  }

  receipted(id) {
    this.emit("receipt", { headers: { "receipt-id": id } });
    this.replies.put(id);
  }

  failed(headers, body) {
    this.emit("error", { headers, body });
    this.error.come();
  }

  /** Ends the connection for the scenario; text says how. */
  ended(text) {
    if (this.gone.past) {
      return;
    }
    this.emit("disconnected", { text });
    this.gone.come();
    this.open.come();
    this.messages.end();
    this.replies.end();
  }

  // What the scenarios call.

  async connect(variant = {}) {
    this.dial(variant);
    await this.wait(this.open, "CONNECTED");
    if (this.gone.past) {
      throw new Failure(`${this.who}: not connected`);
    }
    return this;
  }

  /** Leaves with a DISCONNECT whose receipt is awaited. */
  async close() {
    this.leave(this.receipt("disconnect"));
    await this.wait(this.gone, "the end of the connection");
  }

  async drop() {
    this.cut();
    await this.wait(this.gone, "the end of the connection");
  }

  async wait(moment, what) {
    await within(moment.promise, `${what} of ${this.who}`);
  }

  /** A label of this connection's own, reported as asked for; undefined where the library cannot ask. */
  receipt(kind) {
    if (!this.constructor.receipts.has(kind)) {
      return undefined;
    }
    return this.label(kind);
  }

  label(kind) {
    this.asked++;
    const label = `${kind}-${this.asked}`;
    this.emit("asked", { text: label });
    return label;
  }

  /** Waits for the receipt, if there is one to come. */
  async confirmed(label) {
    while (label !== undefined && (await this.replies.next()) !== label) {
      // An earlier one that nobody waited for.
    }
  }

  /** Subscribes and waits for the receipt. */
  async subscribe(destination, ack = "auto", headers = {}) {
    const receipt = this.receipt("subscribe");
    const subscription = this.join(destination, ack, headers, receipt);
    await this.confirmed(receipt);
    return subscription;
  }

  /** Sends text or octets, without a receipt. */
  send(destination, body, headers = {}) {
    this.transmit(destination, octetsOf(body), headers, undefined);
  }

  /** Sends and waits for the receipt. */
  async store(destination, body, headers = {}) {
    const receipt = this.receipt("send");
    this.transmit(destination, octetsOf(body), headers, receipt);
    await this.confirmed(receipt);
  }

  next() {
    return this.messages.next();
  }

  async take(count) {
    const out = [];
    while (out.length < count) {
      out.push(await this.next());
    }
    return out;
  }

  /** Acknowledges and waits for the receipt. */
  async ack(message, headers = {}) {
    const receipt = this.receipt("ack");
    this.settle("ack", message, headers, receipt);
    await this.confirmed(receipt);
  }

  /** Refuses and waits for the receipt. */
  async nack(message) {
    const receipt = this.receipt("ack");
    this.settle("nack", message, {}, receipt);
    await this.confirmed(receipt);
  }

  async takeAcked(count) {
    for (let n = 0; n < count; n++) {
      await this.ack(await this.next());
    }
  }
}

export function octetsOf(body) {
  return typeof body === "string" ? new TextEncoder().encode(body) : body;
}
