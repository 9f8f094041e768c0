// What the client imports from the platform it was written for, as far as it needs it to reach one container: here the
// container is a runtime on loopback, or one behind a gateway that wants to see a token.

const token = process.env.SANDPOD_TOKEN;
const headers = token ? { Authorization: `Bearer ${token}` } : {};

if (token) {
  const plain = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const request = new Request(input, init);
    request.headers.set("Authorization", headers.Authorization);
    return plain(request);
  };
}

async function upgrade(target) {
  const webSocket = new WebSocket(target.replace(/^http/, "ws"), { headers });
  webSocket.binaryType = "arraybuffer";
  await new Promise((opened, failed) => {
    webSocket.onopen = opened;
    webSocket.onerror = () => failed(new Error(`no WebSocket at ${target}`));
  });
  return { status: 101, webSocket };
}

export class RpcTarget {}
export const tracing = { enterSpan: (_name, run) => run({ setAttribute() {}, isTraced: false }) };

export class ContainerProxy {}
export const getContainer = () => {
  throw new Error("there is only one container here");
};
export const switchPort = (request) => request;

export class Container {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
  async getState() {
    return { status: "healthy" };
  }
  async containerFetch(request, init) {
    const { pathname, search } = new URL(request.url ?? request);
    const target = this.env.RUNTIME + pathname + search;
    if (request.headers?.get("Upgrade")) return upgrade(target);
    return request instanceof Request ? fetch(new Request(target, request)) : fetch(target, init);
  }
  async fetch(request) {
    return this.containerFetch(request);
  }
  async startAndWaitForPorts() {}
  async destroy() {}
  async stop() {}
  renewActivityTimeout() {}
}

class Storage {
  #entries = new Map();
  async get(key) {
    return this.#entries.get(key);
  }
  async put(key, value) {
    this.#entries.set(key, value);
  }
  async delete(key) {
    return this.#entries.delete(key);
  }
  async list() {
    return new Map(this.#entries);
  }
  async transaction(run) {
    return run(this);
  }
}

export const context = () => ({
  id: { toString: () => "0123456789abcdef" },
  storage: new Storage(),
  container: { running: true },
  blockConcurrencyWhile: (run) => run(),
  waitUntil() {},
  abort() {},
});
