// What the client imports from the platform it was written for, as far as it needs it to reach one container: here the
// container is a runtime on loopback.

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
