/** @stomp/stompjs: STOMP over WebSocket, in Node and in browsers. */

import { Peer, asText } from "./peer.mjs";
import { watched } from "./websocket.mjs";

export function load(platform) {
  const { Client, Versions } = platform.library("@stomp/stompjs");

  return class StompJS extends Peer {
    // Its begin, commit and abort take no headers.
    static receipts = new Set(["subscribe", "send", "ack", "unsubscribe", "disconnect"]);

    constructor(...args) {
      super(...args);
      this.transactions = new Map();
    }

    dial(variant) {
      const versions = this.version ? new Versions([this.version]) : Versions.default;
      const { chunk, binary } = this.run.options;
      this.client = new Client({
        webSocketFactory: () => watched(this, platform, variant.subprotocols ?? versions.protocolVersions()),
        stompVersions: versions,
        connectHeaders: headersOf(variant),
        reconnectDelay: 0,
        splitLargeFrames: chunk > 0,
        maxWebSocketChunkSize: chunk,
        forceBinaryWSFrames: Boolean(binary),
        onConnect: (frame) => this.connected(frame.headers),
        onStompError: (frame) => this.failed(frame.headers, frame.binaryBody),
        onWebSocketClose: (event) => this.ended(`close ${event.code}`),
        onHeartbeatReceived: () => this.beatsIn++,
        debug: (line) => (this.beatsOut += line === ">>> PING" ? 1 : 0),
      });
      if (this.heartBeat) {
        [this.client.heartbeatOutgoing, this.client.heartbeatIncoming] = this.heartBeat;
      }
      this.client.activate();
    }

    /** The headers of a frame that asks for a receipt. */
    asking(receipt, headers = {}) {
      if (!receipt) {
        return headers;
      }
      this.client.watchForReceipt(receipt, () => this.receipted(receipt));
      return { ...headers, receipt };
    }

    transmit(destination, octets, headers, receipt) {
      const text = asText(octets);
      this.client.publish({
        destination,
        headers: this.asking(receipt, headers),
        ...(text === undefined ? { binaryBody: octets } : { body: text }),
      });
    }

    join(destination, ack, headers, receipt) {
      return this.client.subscribe(destination, this.listener, this.asking(receipt, { ack, ...headers }));
    }

    expect() {
      this.client.onUnhandledMessage = this.listener;
    }

    listener = (frame) =>
      this.received({ headers: frame.headers, body: frame.binaryBody, native: frame }, this.kind);

    part(subscription, receipt) {
      subscription.unsubscribe(this.asking(receipt));
    }

    settle(verb, message, headers, receipt) {
      message.native[verb](this.asking(receipt, headers));
    }

    begin(name) {
      this.transactions.set(name, this.client.begin(name));
    }

    finish(verb, name) {
      this.transactions.get(name)[verb]();
    }

    leave(receipt) {
      this.client.disconnectHeaders = { receipt };
      this.client.onDisconnect = () => this.receipted(receipt);
      this.client.deactivate();
    }

    cut() {
      this.client.deactivate({ force: true });
    }

    countBeats() {
      return { in: this.beatsIn, out: this.beatsOut };
    }
  };
}

function headersOf(variant) {
  const headers = {};
  for (const name of ["host", "login", "passcode"]) {
    if (variant[name] !== undefined) {
      headers[name] = variant[name];
    }
  }
  return headers;
}
