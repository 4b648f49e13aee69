/**
 * Sends one message with stompit as a client with a certificate.
 *
 *     node certificate.mjs MODULES HOST PORT DESTINATION CA [CERTIFICATE KEY]
 *
 * MODULES is a directory that has node_modules.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, host, port, destination, ca, cert, key] = process.argv.slice(2);
const stompit = createRequire(`${modules}/`)("stompit");

function fail(error) {
  console.error(error.message);
  process.exit(1);
}

const options = { ssl: true, host, port: Number(port), ca: readFileSync(ca), connectHeaders: { host } };
if (cert) {
  Object.assign(options, { cert: readFileSync(cert), key: readFileSync(key) });
}
stompit.connect(options, (error, client) => {
  if (error) {
    fail(error);
  }
  client.on("error", fail);
  const onReceipt = () => client.disconnect((problem) => (problem ? fail(problem) : process.exit()));
  client.send({ destination }, { onReceipt }).end("from stompit");
});
