// Searches of one connection, one after another: calls, retries, the schedule of departures.
import {BlockStore} from "./blocks.js";
import {Core, Session} from "./core.js";
import {PrivateMailError} from "./error.js";
import {Transport} from "./transport.js";

// As the C++ client retries (client/transport/channel.cc).
const MAX_ATTEMPTS = 4;
const RETRIED = new Set(["UNAVAILABLE", "CANCELLED"]);
const FIRST_BACKOFF_MS = 200, MAX_BACKOFF_MS = 1000;

const GUARANTEE = Object.freeze({
  kind: "computational",
  bits: 128,
  assumption: "ring-LWE with N = 2048, q = 2^41 - 2^12 + 1, ternary secrets and errors of deviation 3.24, circular " +
      "security for the automorphism keys, and SHAKE128 as a random oracle",
  source: "PRIVACY.md section 9",
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Engine {
  static async open(options) {
    return new Engine(await Core.load(), options.cache ? await BlockStore.open() : null, options);
  }

  constructor(core, store, options) {
    this.core = core;
    this.store = store;
    this.options = options;
    this.transport = new Transport(options);
    this.sessions = new Map();  // by collection
    this.restored = new Set();  // tables that the store was asked for
    this.arrived = null;        // when the last answer came
    this.interval = 0;
  }

  async describe(name) {
    const session = this.sessionOf(name);
    const search = session.search([], {k: 1});
    try {
      await this.depart();
      await this.send(search, this.next(search));
    } finally {
      search.free();
    }
    const {uuid, extractor, dimensions, metric, delta, rows} = session.describe();
    return {uuid, extractor, dimensions, metric, delta, rows};
  }

  /** The result of each target. */
  async search(name, targets, {k = 8, payloads = false, label, ...others}) {
    for (const other in others) {
      throw new PrivateMailError("INVALID_ARGUMENT", `search takes k, payloads and label, but not ${other}`);
    }
    if (!Number.isSafeInteger(k)) {
      throw new PrivateMailError("INVALID_ARGUMENT", `k must be an integer, but is ${k}`);
    }
    if (label !== undefined && (label | 0) !== label) {
      throw new PrivateMailError("INVALID_ARGUMENT", `label must be an integer of 32 bits, but is ${label}`);
    }
    const session = this.sessionOf(name);
    const search = session.search(targets.map((target) => Float32Array.from(target)), {k, payloads, label});
    try {
      const bytes = {up: 0, down: 0}, times = {encryption: 0, answer: 0, ranking: 0};
      await this.depart();
      for (let described = false;; described = true) {
        if (described) await this.restore(session);
        const started = performance.now();
        const call = this.next(search);
        const sent = performance.now();
        if (described) times.encryption += sent - started;
        if (call.method === "") break;
        bytes.up += call.request.byteLength;
        bytes.down += await this.send(search, call);
        times.answer += performance.now() - sent;
      }
      await this.keep(session);
      // Nothing is sent from here on but at a departure.
      const started = performance.now();
      const found = targets.map((_, target) => search.matches(target));
      times.ranking = performance.now() - started;
      const {delta, items, itemsVersion, table} = session.describe();
      return found.map((matches) => ({matches, guarantee: GUARANTEE, delta, items, itemsVersion, table, bytes, times}));
    } finally {
      search.free();
    }
  }

  sessionOf(name) {
    if (!this.sessions.has(name)) this.sessions.set(name, new Session(this.core, name));
    return this.sessions.get(name);
  }

  next(search, again = false) {
    const call = search.next(again);
    this.interval = call.interval;
    return call;
  }

  /** Waits for a multiple of the interval after the last answer, so that ranking does not show. */
  async depart() {
    if (this.arrived === null) return;
    const steps = Math.max(1, Math.ceil((performance.now() - this.arrived) / this.interval));
    const departure = this.arrived + steps * this.interval;
    for (let left; (left = departure - performance.now()) > 0;) await sleep(Math.ceil(left));
  }

  /** Sends a call until it is answered. The bytes are the same each time; returns those of the answer. */
  async send(search, call) {
    const deadline = performance.now() + this.options.timeout;
    for (let attempt = 1;; ++attempt) {
      let received = 0;
      try {
        await this.transport.call(call.method, call.request, (message) => {
          received += message.byteLength;
          search.take(message);
        }, deadline);
        return received;
      } catch (error) {
        // The server's words decide this, never anything that was decrypted.
        let wait = null;
        if (RETRIED.has(error.code) && "retryAfter" in error && attempt < MAX_ATTEMPTS) {
          wait = Math.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (attempt - 1));
        } else if (error.code === "RESOURCE_EXHAUSTED") {
          wait = error.retryAfter ?? null;
        }
        if (wait === null || performance.now() + wait >= deadline) throw error;
        await sleep(Math.max(10, wait));
        call = this.next(search, true);
      } finally {
        this.arrived = performance.now();
      }
    }
  }

  tableOf(session) { return `${this.options.url} ${session.describe().uuid}`; }

  /** Gives the session what the store has of its table, once. */
  async restore(session) {
    const table = this.tableOf(session);
    if (this.store === null || this.restored.has(table)) return;
    this.restored.add(table);
    const blocks = await this.store.load(table).catch(() => []);
    for (const block of blocks) session.addBlock(block);
  }

  async keep(session) {
    const table = session.describe().table;
    if (this.store === null || session.kept === table) return;
    session.kept = table;
    await this.store.save(this.tableOf(session), session.blocks()).catch(() => {});
  }
}
