/** The scenarios of queues and transactions. */

import { PATIENCE, Failure } from "./peer.mjs";

/** Connects and subscribes. */
async function attach(run, who, destination, ack, headers = {}) {
  const peer = await run.peer(who);
  await peer.subscribe(destination, ack, headers);
  return peer;
}

/** Ten messages, some acknowledged, and what the next consumer then gets. */
export async function ack_modes(run) {
  const producer = await run.peer("producer");
  for (const mode of run.options.modes) {
    const destination = `${run.queue}/${mode}`;
    for (let n = 0; n < 9; n++) {
      producer.send(destination, String(n));
    }
    await producer.store(destination, "9");

    const first = await attach(run, `first:${mode}`, destination, mode);
    const got = await first.take(10);
    if (mode === "client") {
      await first.ack(got[4]);
    } else if (mode === "client-individual") {
      for (let n = 1; n < 10; n += 2) {
        await first.ack(got[n]);
      }
    }
    await first.close();

    const second = await attach(run, `second:${mode}`, destination, "client");
    await second.takeAcked({ auto: 0, client: 5, "client-individual": 5 }[mode]);
    await producer.store(destination, "end");
    await second.takeAcked(1);
    await second.close();
  }
  await producer.close();
}

/** Several consumers of one queue share its messages. */
export async function competing(run) {
  const { consumers: number, count } = run.options;
  const consumers = [];
  for (let n = 0; n < number; n++) {
    consumers.push(await attach(run, `consumer-${n}`, run.queue, "client-individual", { "prefetch-count": "5" }));
  }
  let seen = 0;
  let all;
  const done = new Promise((resolve) => (all = resolve));
  const consume = async (consumer) => {
    for (;;) {
      const message = await consumer.next();
      consumer.settle("ack", message, {}, undefined);
      if (++seen === count) {
        all();
      }
    }
  };
  const running = consumers.map((consumer) => consume(consumer).catch((error) => error)); // They end with the connection.
  const producer = await run.peer("producer");
  for (let n = 0; n < count; n++) {
    producer.send(run.queue, String(n));
  }
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Failure(`only ${seen} messages came`)), PATIENCE);
  });
  await Promise.race([done, late]);
  clearTimeout(timer);
  for (const peer of [...consumers, producer]) {
    await peer.close();
  }
  await Promise.all(running);
}

/** A refused message comes back later, flagged and counted. */
export async function nack(run) {
  const producer = await run.peer("producer");
  const individual = `${run.queue}/individual`;
  await producer.store(individual, "a");
  await producer.store(individual, "b");
  const consumer = await attach(run, "consumer", individual, "client-individual");
  const [a, b] = await consumer.take(2);
  consumer.emit("nack");
  await consumer.nack(a);
  await consumer.ack(b);
  const again = await consumer.next();
  consumer.emit("nack");
  await consumer.nack(again);
  await consumer.takeAcked(1);
  await consumer.close();

  const together = `${run.queue}/cumulative`;
  for (const body of ["c", "d", "e"]) {
    await producer.store(together, body);
  }
  const cumulative = await attach(run, "cumulative", together, "client");
  await cumulative.nack((await cumulative.take(3))[2]);
  await cumulative.ack((await cumulative.take(3))[2]);
  await cumulative.close();

  for (const name of ["individual", "cumulative"]) {
    await producer.store(`${run.queue}/${name}`, "end");
    const after = await attach(run, `after:${name}`, `${run.queue}/${name}`, "client");
    await after.takeAcked(1);
    await after.close();
  }
  await producer.close();
}

/** A consumer vanishes without DISCONNECT; another one has its messages. */
export async function reconnect(run) {
  const producer = await run.peer("producer");
  for (let n = 0; n < 9; n++) {
    producer.send(run.queue, String(n));
  }
  await producer.store(run.queue, "9");
  const first = await attach(run, "first", run.queue, "client-individual");
  for (const message of (await first.take(10)).slice(0, 3)) {
    await first.ack(message);
  }
  const second = await attach(run, "second", run.queue, "client-individual");
  first.emit("dropped");
  await first.drop();
  await second.takeAcked(7);
  await producer.store(run.queue, "end");
  await second.takeAcked(1);
  await second.close();
  await producer.close();
}

/** COMMIT shows all of a transaction, ABORT nothing, also of its ACKs. */
export async function transactions(run) {
  const producer = await run.peer("producer");
  const other = await run.peer("other");
  const consumer = await run.peer("consumer");
  for (const destination of [`${run.queue}/queue`, `${run.topic}/topic`]) {
    await consumer.subscribe(destination);
    // Both connections use one name for their transaction.
    for (const [peer, verdict] of [[producer, "commit"], [other, "abort"]]) {
      peer.begin("tx-1");
      for (let n = 0; n < 3; n++) {
        await peer.store(destination, `${verdict}-${n}`, { transaction: "tx-1" });
      }
    }
    await other.store(destination, "before");
    await consumer.next();
    await finish(other, "abort");
    await finish(producer, "commit");
    await consumer.take(3);
    await producer.store(destination, "end");
    await consumer.next();
  }

  const acks = `${run.queue}/acks`;
  await producer.store(acks, "kept");
  await producer.store(acks, "taken");
  const first = await attach(run, "first", acks, run.version === "1.0" ? "client" : "client-individual");
  const [kept, taken] = await first.take(2);
  for (const [message, verb] of [[kept, "abort"], [taken, "commit"]]) {
    if (run.version === "1.0" && message === taken) {
      break; // 1.0 has only cumulative ACKs, which would take both.
    }
    first.begin("tx-1");
    await first.ack(message, { transaction: "tx-1" });
    await finish(first, verb);
  }
  await first.close();
  const second = await attach(run, "second", acks, "client");
  await second.ack((await second.take(run.options.unacked)).at(-1));
  await producer.store(acks, "end");
  await second.takeAcked(1);
  for (const peer of [second, producer, other, consumer]) {
    await peer.close();
  }
}

/** Ends a transaction and, where the library can ask for it, waits for the receipt. */
async function finish(peer, verb) {
  const receipt = peer.receipt(verb);
  peer.finish(verb, "tx-1", receipt);
  await peer.confirmed(receipt);
}

/** Takes a number of messages and sits on them until it is killed. */
export async function hold(run) {
  const holder = await run.peer("holder", { heartBeat: [1000, 1000] });
  await holder.subscribe(run.queue, "client-individual");
  await holder.take(run.options.count);
  holder.emit("holding");
  await holder.gone.promise;
}
