/**
 * Runs one scenario with one library in a browser. What to do it fetches from the test, under the address of this page
 * and the session in its query; what it saw it posts there.
 */

import { Failure } from "./peer.mjs";
import { run } from "./run.mjs";

const base = `/sessions/${new URLSearchParams(location.search).get("session")}`;

const LIBRARIES = {
  "@stomp/stompjs": () => globalThis.StompJs,
  stompjs: () => globalThis.Stomp,
  "webstomp-client": () => globalThis.webstomp,
};

/** Posts events in their order, many at a time. */
class Reporter {
  constructor() {
    this.waiting = [];
    this.posted = Promise.resolve();
  }

  report(event) {
    this.waiting.push(event);
    if (this.waiting.length === 1) {
      this.posted = this.posted.then(() => {
        const events = this.waiting;
        this.waiting = [];
        return post("events", events);
      });
    }
  }
}

async function post(kind, data) {
  const response = await fetch(`${base}/${kind}`, { method: "POST", body: JSON.stringify(data) });
  if (!response.ok) {
    throw new Error(`${kind}: ${response.status}`);
  }
}

const reporter = new Reporter();
let fault = "";
try {
  const platform = {
    library: (name) => LIBRARIES[name](),
    webSocket: (url, protocols) => new WebSocket(url, protocols),
    report: (event) => reporter.report(event),
  };
  await run(platform, await (await fetch(base)).json());
} catch (error) {
  fault = error instanceof Failure ? error.message : String(error.stack);
}
await reporter.posted;
await post("end", { fault });
