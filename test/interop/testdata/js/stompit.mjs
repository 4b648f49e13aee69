/** stompit: STOMP over TCP in Node. */

import net from "node:net";

import { Failure, Peer } from "./peer.mjs";

export function load(platform) {
  const stompit = platform.library("stompit");

  /** Shows the ERROR frames, of which stompit itself shows the message header only, and then lets it handle them. */
  class Client extends stompit.Client {
    labels = new Map(); // By the receipt ids that stompit makes.

    setCommandHandlers(handlers) {
      const { labels } = this;
      const own = handlers.ERROR;
      super.setCommandHandlers({
        ...handlers,
        ERROR: function (frame, ...rest) {
          const id = frame.headers["receipt-id"];
          this.emit("refused", id ? { ...frame.headers, "receipt-id": labels.get(id) ?? id } : frame.headers);
          own.call(this, frame, ...rest);
        },
      });
    }

    sendFrame(command, headers, options) {
      const frame = super.sendFrame(command, headers, options);
      if (options?.label) {
        this.labels.set(String(frame.headers.receipt), options.label);
      }
      return frame;
    }
  }

  return class Stompit extends Peer {
    // Its unsubscribe asks by itself and tells nobody.
    static receipts = new Set(["subscribe", "send", "commit", "abort", "ack", "disconnect"]);

    constructor(...args) {
      super(...args);
      this.transactions = new Map();
      this.nextID = 0;
    }

    dial(variant) {
      const [host, port] = this.run.address.split(":");
      const socket = net.connect({ host, port: Number(port) }, () => {
        const headers = {
          "accept-version": this.version || "1.0,1.1,1.2",
          host: variant.host,
          login: variant.login,
          passcode: variant.passcode,
        };
        this.client.connect(headers, (error, client) => {
          if (!error) {
            this.connected(client.headers);
          }
        });
      });
      // Without heart-beats, so on 1.0, it has Nagle's algorithm delay the end of each frame by 40 ms. Its own limit on
      // header lines is an eighth of ours.
      this.client = new Client(socket, { heartbeat: this.heartBeat ?? [10000, 10000], maxLineLength: 16384 });
      this.client.on("refused", (headers) => this.failed(headers));
      this.client.on("error", (error) => (this.fault = error));
      socket.on("close", () => this.ended(this.fault?.message));
    }

    /** The options of a frame that asks for a receipt. */
    asking(receipt) {
      return receipt && { onReceipt: () => this.receipted(receipt), label: receipt };
    }

    transmit(destination, octets, headers, receipt) {
      const transaction = this.transactions.get(headers.transaction);
      const all = { destination, ...headers };
      if (octets.includes(0)) {
        all["content-length"] = octets.length; // stompit sends none by itself.
      }
      const frame = (transaction ?? this.client).send(all, this.asking(receipt));
      if (octets.length > 0) {
        frame.write(Buffer.from(octets));
      }
      frame.end();
    }

    /** Its subscribe cannot ask for a receipt. On a queue that makes no difference. */
    async subscribe(destination, ack, headers) {
      if (destination.startsWith("/queue/")) {
        return this.join(destination, ack, headers, undefined);
      }
      return super.subscribe(destination, ack, headers);
    }

    join(destination, ack, headers, receipt) {
      if (!receipt) {
        return this.client.subscribe({ destination, ack, ...headers }, this.listener);
      }
      const id = `own-${this.nextID++}`;
      const subscription = this.client.setImplicitSubscription(id, ack, this.listener);
      this.client.sendFrame("SUBSCRIBE", { id, destination, ack, ...headers }, this.asking(receipt)).end();
      return subscription;
    }

    expect(id) {
      this.client.setImplicitSubscription(id, "auto", this.listener);
    }

    /** Reads a MESSAGE whole; stompit goes on with the next one then. */
    listener = (error, frame) => {
      if (error) {
        return; // Of the connection, which shows it too.
      }
      const chunks = [];
      frame.on("data", (chunk) => chunks.push(chunk));
      frame.on("end", () => {
        this.received({ headers: frame.headers, body: Buffer.concat(chunks), native: frame });
      });
    };

    part(subscription) {
      subscription.unsubscribe();
    }

    settle(verb, message, headers, receipt) {
      this.client[verb](message.native, headers, this.asking(receipt));
    }

    begin(name) {
      this.transactions.set(name, this.client.begin({ transaction: name }));
    }

    finish(verb, name, receipt) {
      this.transactions.get(name)[verb](this.asking(receipt));
      this.transactions.delete(name);
    }

    leave(receipt) {
      this.client.disconnect((error) => {
        if (error) {
          throw new Failure(error.message);
        }
        this.receipted(receipt);
      });
    }

    cut() {
      this.client.getTransportSocket().resetAndDestroy();
    }

    /** Octets that passed in a time when nothing but heart-beats did. */
    countBeats() {
      const socket = this.client.getTransportSocket();
      return { in: socket.bytesRead, out: socket.bytesWritten };
    }
  };
}
