/**
 * Runs one scenario with one library in Node.
 *
 *     node node.mjs MODULES LIBRARY SCENARIO ADDRESS
 *
 * MODULES is a directory that has node_modules. It reads the scenario's options as one JSON object from standard input
 * and prints what it saw as one JSON object a line. It exits non-zero when it could not go on.
 */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { Failure } from "./peer.mjs";
import { run } from "./run.mjs";

const [modules, library, scenario, address] = process.argv.slice(2);
const require = createRequire(`${modules}/`);

const platform = {
  library: (name) => require(name),
  webSocket: (url, protocols) => new (require("ws"))(url, protocols),
  report: (event) => process.stdout.write(JSON.stringify(event) + "\n"),
};

try {
  await run(platform, { library, scenario, address, options: JSON.parse(readFileSync(0, "utf8")) });
} catch (error) {
  console.error(`${scenario}: ${error instanceof Failure ? error.message : error.stack}`);
  process.exitCode = 1;
}
process.stdout.write("", () => process.exit()); // After all that was written before.
