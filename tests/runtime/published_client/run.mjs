// Runs every scenario against the runtime at argv[2], with the client's modules from argv[3]; one line of JSON for each.

import { register } from "node:module";
import { pathToFileURL } from "node:url";

register("./resolve.mjs", import.meta.url);
const [runtime, modules, workspace] = process.argv.slice(2);
const client = await import(pathToFileURL(`${modules}/@cloudflare/sandbox/dist/index.js`).href);
const { scenarios } = await import("./scenarios.mjs");

console.debug = console.info = console.log; // the client logs to these: standard output is ours
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
console.log = console.warn = console.error = () => {};

for (const [name, run] of Object.entries(scenarios)) {
  try {
    await run({ client, runtime, workspace });
    say({ name, ok: true });
  } catch (error) {
    say({ name, ok: false, error: `${error?.stack ?? error} ${JSON.stringify(error?.errorResponse ?? "")}` });
  }
}
process.exit(0);
