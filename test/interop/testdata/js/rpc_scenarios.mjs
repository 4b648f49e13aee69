/** The scenarios of requests and answers. */

/** Asks a number of times at once, and takes the answers. */
export async function request(run) {
  const requester = await run.peer("requester");
  await requester.subscribe(run.options.reply);
  await ask(run, requester);
}

/** The same at an address that nobody subscribes to: the server makes the subscription, with that address as its id. */
export async function request_implicitly(run) {
  const requester = await run.peer("requester");
  requester.expect(run.options.reply);
  await ask(run, requester);
}

async function ask(run, requester) {
  const { destination, reply, count } = run.options;
  for (let n = 0; n < count; n++) {
    requester.send(destination, String(n), { "reply-to": reply, "correlation-id": String(n) });
  }
  await requester.take(count);
  await requester.close();
}

/** Answers a number of requests, each with its body twice. */
export async function respond(run) {
  const responder = await run.peer("responder");
  await responder.subscribe(run.options.destination);
  responder.emit("ready");
  for (let n = 0; n < run.options.count; n++) {
    const { headers, body } = await responder.next();
    responder.send(headers["reply-to"], new TextDecoder().decode(body).repeat(2), { by: "JavaScript" });
  }
  await responder.close();
}
