/**
 * The scenarios of stomp_client.py, as a JavaScript program would have them: one function each, for every library.
 *
 * They assert nothing about the server, the Go test does; they throw when they could not go on, for example because a
 * message that they waited for did not come.
 */

import { Failure, fromBase64, headersOf } from "./peer.mjs";

const VERSIONS = ["1.0", "1.1", "1.2"];

/** One connection per variant of CONNECT. */
export async function connect(run) {
  for (const variant of run.options.variants) {
    const peer = await run.peer(variant.name, { version: variant.version }, variant);
    await peer.close();
  }
}

/** One publisher, one subscriber per version, many messages in order. */
export async function fan_out(run) {
  const { count } = run.options;
  const subscribers = [];
  for (const version of VERSIONS) {
    const subscriber = await run.peer(`sub-${version}`, { version });
    await subscriber.subscribe(run.topic);
    subscribers.push(subscriber);
  }
  const publisher = await run.peer("publisher");
  for (let n = 0; n < count - 1; n++) {
    publisher.send(run.topic, String(n));
  }
  await publisher.store(run.topic, String(count - 1));
  for (const subscriber of subscribers) {
    await subscriber.take(count);
    await subscriber.close();
  }
  await publisher.close();
}

/** Asks for a receipt on each kind of frame that it can, without waiting in between. */
export async function receipts(run) {
  const peer = await run.peer("client");
  peer.join(run.queue, "client", {}, peer.receipt("subscribe"));
  const topic = peer.join(run.topic, "auto", {}, peer.receipt("subscribe"));
  const send = (destination, body, headers = {}) =>
    peer.transmit(destination, new TextEncoder().encode(body), headers, peer.receipt("send"));
  send(run.queue, "stored");
  send(run.topic, "published");
  peer.begin("tx-1");
  send(run.queue, "in a transaction", { transaction: "tx-1" });
  send(run.topic, "in a transaction", { transaction: "tx-1" });
  peer.finish("commit", "tx-1", peer.receipt("commit"));
  peer.begin("tx-1");
  send(run.queue, "in no transaction", { transaction: "tx-1" });
  peer.finish("abort", "tx-1", peer.receipt("abort"));
  const got = (await peer.take(4)).filter((m) => m.headers.destination.startsWith("/queue/"));
  for (const message of got) {
    await peer.ack(message);
  }
  peer.part(topic, peer.receipt("unsubscribe"));
  await peer.close();
}

/** A SUBSCRIBE's receipt means: what is published from now on is seen. */
export async function live(run) {
  const publisher = await run.peer("publisher");
  const subscriber = await run.peer("subscriber");
  for (let n = 0; n < run.options.count; n++) {
    const destination = `${run.topic}/${n}`;
    await subscriber.subscribe(destination);
    publisher.send(destination, String(n));
    await subscriber.next();
  }
  await subscriber.close();
  await publisher.close();
}

/** All octets, none, and many, over a topic and a queue. */
export async function bodies(run) {
  const peer = await run.peer("client");
  for (const destination of [run.topic, run.queue]) {
    await peer.subscribe(destination);
    for (const body of run.options.bodies) {
      await peer.store(destination, fromBase64(body), { "content-type": "application/octet-stream" });
      await peer.next();
    }
  }
  await peer.close();
}

/** One message with odd headers, as seen by a subscriber of each version. */
export async function headers(run) {
  const subscribers = [];
  for (const version of VERSIONS) {
    const subscriber = await run.peer(`sub-${version}`, { version });
    await subscriber.subscribe(run.topic);
    subscribers.push(subscriber);
  }
  const publisher = await run.peer("publisher");
  const odd = headersOf(run.options.headers);
  await publisher.store(run.topic, "odd", odd);
  for (const subscriber of subscribers) {
    await subscriber.next();
    await subscriber.close();
  }
  for (const body of ["odd", "again"]) {
    await publisher.store(run.queue, body, odd);
  }
  const consumer = await run.peer("consumer", { version: "1.2" });
  await consumer.subscribe(run.queue);
  await consumer.take(2);
  await consumer.close();
  await publisher.close();
}

/** Idles with heart-beats of a second both ways, then works on. */
export async function heart_beat(run) {
  const peer = await run.peer("client", { heartBeat: [1000, 1000] });
  await peer.subscribe(run.topic);
  const before = peer.countBeats();
  await new Promise((resolve) => setTimeout(resolve, run.options.idle_ms));
  if (peer.gone.past) {
    throw new Failure("the connection ended while idle");
  }
  const after = peer.countBeats();
  peer.emit("idled", { headers: { in: String(after.in - before.in), out: String(after.out - before.out) } });
  await peer.store(run.topic, "still here");
  await peer.next();
  await peer.close();
}

/** One connection per fault; what the client is told, and that it ends. */
export async function errors(run) {
  for (const fault of run.options.faults) {
    if (fault.verb === "connect") {
      const peer = run.unconnected(fault.name, { version: fault.destination });
      // A subprotocol that the server does not have would end the connection before the CONNECT.
      await peer.connect({ subprotocols: [] }).catch(() => peer.emit("refused"));
      await peer.wait(peer.error, "ERROR");
      continue;
    }
    const peer = await run.peer(fault.name);
    await provoke(run, peer, fault);
    await peer.wait(peer.error, "ERROR");
    await peer.wait(peer.gone, "the end of the connection");
  }
}

/** Does on an open connection what the server must refuse. */
async function provoke(run, peer, { verb, destination }) {
  if (verb === "send") {
    peer.transmit(destination, new TextEncoder().encode("x"), {}, peer.label("bad"));
  } else if (verb === "subscribe") {
    peer.join(destination, "auto", {}, peer.label("bad"));
  } else if (verb === "ack twice") {
    await peer.subscribe(run.queue, "client");
    await peer.store(run.queue, "x");
    const message = await peer.next();
    await peer.ack(message);
    peer.settle("ack", message, {}, peer.label("bad"));
  } else if (verb === "begin twice") {
    peer.begin("tx-1");
    peer.begin("tx-1");
  } else {
    throw new Failure(`no such verb: ${verb}`);
  }
}

/** Tries to connect where the server must not let it. */
export async function refused(run) {
  const peer = run.unconnected("client");
  await peer.connect().catch(() => peer.emit("refused"));
}

/** Sends the given messages, each with a receipt. */
export async function publish(run) {
  const peer = await run.peer("publisher");
  for (const message of run.options.messages) {
    await peer.store(run.options.destination, fromBase64(message.body), headersOf(message.headers));
  }
  await peer.close();
}

/** Takes a number of messages, acknowledges each, and leaves. */
export async function consume(run) {
  const { destination, ack, count, headers: more } = run.options;
  const peer = await run.peer("consumer");
  await peer.subscribe(destination, ack, headersOf(more));
  peer.emit("ready");
  for (let n = 0; n < count; n++) {
    const message = await peer.next();
    if (ack !== "auto") {
      await peer.ack(message);
    }
  }
  await peer.close();
}

export * from "./queue_scenarios.mjs";
export * from "./rpc_scenarios.mjs";
