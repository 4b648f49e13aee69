/**
 * stompjs 2 and webstomp-client: the library that @stomp/stompjs comes from, and another one that comes from it. Both
 * speak STOMP over WebSocket with strings as bodies.
 */

import { Peer, octetsOf } from "./peer.mjs";
import { watched } from "./websocket.mjs";

export function load(platform, name) {
  const library = platform.library(name);
  const isWebstomp = name === "webstomp-client";
  const subprotocols = isWebstomp ? library.VERSIONS.supportedProtocols() : ["v10.stomp", "v11.stomp"];

  return class Ancestor extends Peer {
    // A receipt for DISCONNECT would come after they have closed; begin, commit and abort take no headers.
    static receipts = new Set(["subscribe", "send", "ack"]);

    constructor(...args) {
      super(...args);
      this.transactions = new Map();
    }

    dial() {
      const socket = watched(this, platform, subprotocols);
      socket.addEventListener("close", (event) => this.ended(`close ${event.code}`));
      this.client = library.over(socket, { debug: false });
      this.client.debug = () => {};
      this.client.onreceipt = (frame) => this.receipted(frame.headers["receipt-id"]);
      this.client.connect(
        {},
        (frame) => this.connected(frame.headers),
        (fault) => {
          if (fault.command === "ERROR") {
            this.failed(fault.headers, octetsOf(fault.body));
          }
        },
      );
    }

    transmit(destination, octets, headers, receipt) {
      const body = new TextDecoder().decode(octets);
      const all = asking(receipt, headers);
      if (isWebstomp) {
        this.client.send(destination, body, all);
      } else {
        this.client.send(destination, all, body);
      }
    }

    join(destination, ack, headers, receipt) {
      return this.client.subscribe(destination, this.listener, asking(receipt, { ack, ...headers }));
    }

    expect() {
      this.client.onreceive = this.listener;
    }

    listener = (frame) =>
      this.received({ headers: frame.headers, body: octetsOf(frame.body), native: frame }, this.kind);

    part(subscription) {
      subscription.unsubscribe();
    }

    settle(verb, message, headers, receipt) {
      message.native[verb](asking(receipt, headers));
    }

    begin(name) {
      this.transactions.set(name, this.client.begin(name));
    }

    finish(verb, name) {
      this.transactions.get(name)[verb]();
    }

    leave() {
      this.client.disconnect();
    }

    cut() {
      this.client.ws.close();
    }
  };
}

/** The headers of a frame that may ask for a receipt. */
function asking(receipt, headers) {
  return receipt ? { ...headers, receipt } : { ...headers };
}
