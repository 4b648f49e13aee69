/** The socket of the clients that speak STOMP over WebSocket. */

/**
 * A WebSocket to the server, of which the peer reports what was negotiated. peer.kind tells of the message that is being
 * handled whether it is text or binary.
 */
export function watched(peer, platform, protocols) {
  const socket = platform.webSocket(peer.run.address, protocols);
  socket.addEventListener("open", () => {
    peer.emit("upgraded", { headers: { protocol: socket.protocol, extensions: socket.extensions } });
  });
  // Added before the library's own listener, so it runs first.
  socket.addEventListener("message", (event) => {
    peer.kind = typeof event.data === "string" ? "text" : "binary";
  });
  return socket;
}
