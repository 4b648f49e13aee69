/** One scenario's view of the test: where the server is, its options, and where it reports. */

import { toBase64 } from "./peer.mjs";
import * as scenarios from "./scenarios.mjs";

const start = performance.now();

/** The file that knows each package. */
const FILES = {
  stompit: "./stompit.mjs",
  "@stomp/stompjs": "./stompjs.mjs",
  stompjs: "./ancestors.mjs",
  "webstomp-client": "./ancestors.mjs",
};

/**
 * Runs a scenario. platform has library(name), which returns a package, webSocket(address, protocols) and report(event).
 */
export async function run(platform, { library, scenario, address, options }) {
  const { load } = await import(FILES[library]);
  await scenarios[scenario](new Run(platform, load(platform, library), address, options));
}

class Run {
  constructor(platform, peerClass, address, options) {
    this.platform = platform;
    this.peerClass = peerClass;
    this.address = address;
    this.options = options;
    this.version = options.version || "1.2";
    this.queue = `/queue/${options.channel ?? ""}`;
    this.topic = `/topic/${options.channel ?? ""}`;
  }

  /** A connection that is not yet made. */
  unconnected(who, options) {
    return new this.peerClass(this, who, options);
  }

  /** A connection. */
  peer(who, options, variant) {
    return this.unconnected(who, options).connect(variant);
  }

  emit(event, who, { headers, body, text } = {}) {
    this.platform.report({
      event,
      who,
      ms: performance.now() - start,
      headers: headers && Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
      body: body && toBase64(body),
      text,
    });
  }
}
