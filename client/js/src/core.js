// The C interface (client/c/privatemail_encrypted.h) in WebAssembly: memory and structs.
import {PrivateMailError} from "./error.js";

const SCRATCH_BYTES = 128;  // for the largest struct
const decoder = new TextDecoder("utf-8", {ignoreBOM: true});

export class Core {
  static async load() {
    const file = new URL("../core.wasm", import.meta.url);
    const isNode = file.protocol === "file:" && typeof process === "object";
    const bytes = isNode ? await (await import("node:fs/promises")).readFile(file)
                         : await (await fetch(file)).arrayBuffer();
    const crypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
    return new Core(await WebAssembly.compile(bytes), (random) => crypto.getRandomValues(random));
  }

  /** fillRandom: fills a Uint8Array of at most 256 bytes. */
  constructor(module, fillRandom) {
    const imports = {
      env: {
        getentropy: (at, size) => {
          try {
            fillRandom(this.bytes(at, size));
            return 0;
          } catch {
            return -1;
          }
        },
        emscripten_notify_memory_growth: () => {},
      },
      wasi_snapshot_preview1: {
        proc_exit: () => { throw new PrivateMailError("RESOURCE_EXHAUSTED", "no memory is left"); },
      },
    };
    this.exports = new WebAssembly.Instance(module, imports).exports;
    this.exports._initialize();
    this.scratch = this.exports.malloc(SCRATCH_BYTES);
  }

  bytes(at, size) { return new Uint8Array(this.exports.memory.buffer, at, size); }
  copy(at, size) { return this.bytes(at, size).slice(); }
  view(at) { return new DataView(this.exports.memory.buffer, at); }
  text(at, size = this.bytes(at).indexOf(0)) { return decoder.decode(this.bytes(at, size)); }

  /** Calls a function of the interface, and throws its error. */
  call(name, ...args) {
    const error = this.exports[`privatemail_${name}`](...args);
    if (error === 0) return;
    const [, code, message] = /^(\w+): (.*)$/s.exec(this.text(error));
    throw new PrivateMailError(code, message);
  }

  /** Runs `use` with the address of a copy of the bytes. */
  withCopy(bytes, use) {
    const at = this.exports.malloc(Math.max(1, bytes.byteLength));
    if (at === 0) throw new PrivateMailError("RESOURCE_EXHAUSTED", "no memory is left");
    try {
      this.bytes(at, bytes.byteLength).set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      return use(at);
    } finally {
      this.bytes(at, bytes.byteLength).fill(0);
      this.exports.free(at);
    }
  }
}

/** privatemail_session: the keys of searches of one collection. */
export class Session {
  constructor(core, collection) {
    this.core = core;
    core.withCopy(new TextEncoder().encode(`${collection}\0`), (name) =>
      core.call("session_new", name, 0, core.scratch));
    this.handle = core.view(core.scratch).getUint32(0, true);
  }

  describe() {
    const {core} = this;
    core.call("session_describe", this.handle, core.scratch);
    const view = core.view(core.scratch);
    return {
      uuid: core.text(view.getUint32(0, true)),
      extractor: core.text(view.getUint32(4, true)),
      dimensions: view.getUint32(8, true),
      metric: ["", "cosine", "dot", "euclidean"][view.getUint32(12, true)],
      delta: view.getUint32(16, true),
      rows: Number(view.getBigUint64(24, true)),
      items: Number(view.getBigUint64(32, true)),
      itemsVersion: Number(view.getBigUint64(40, true)),
      table: toHex(core.bytes(core.scratch + 48, 32)),
    };
  }

  /** The blocks that the session holds, by digest: {payloads, digest, content}. content: a function. */
  blocks() {
    const {core} = this;
    const blocks = [];
    for (const payloads of [0, 1]) {
      for (let index = 0;; ++index) {
        core.call("session_get_block", this.handle, payloads, index, core.scratch);
        const view = core.view(core.scratch);
        const at = view.getUint32(0, true), size = view.getUint32(4, true);
        if (at === 0) break;
        blocks.push({payloads, digest: toHex(core.bytes(view.getUint32(8, true), 32)),
                     content: () => core.copy(at, size)});
      }
    }
    return blocks;
  }

  addBlock({payloads, content}) {
    this.core.withCopy(content, (at) =>
      this.core.call("session_add_block", this.handle, payloads, at, content.byteLength));
  }

  /** privatemail_search. targets: Float32Arrays of one length. */
  search(targets, {k, payloads, label}) {
    const {core} = this;
    const dimensions = targets[0]?.length ?? 0;
    const values = new Float32Array(targets.length * dimensions);
    targets.forEach((target, i) => {
      if (target.length !== dimensions) {
        throw new PrivateMailError("INVALID_ARGUMENT", `targets must have ${dimensions} values each, ` +
                                   `but target ${i} has ${target.length}`);
      }
      values.set(target, i * dimensions);
    });
    const labels = new Int32Array(targets.length).fill(label ?? 0);
    return core.withCopy(values, (valuesAt) => core.withCopy(labels, (labelsAt) => {
      const query = new DataView(new ArrayBuffer(32));
      [valuesAt, targets.length, dimensions].forEach((value, i) => query.setUint32(4 * i, value, true));
      query.setBigInt64(16, BigInt(k), true);
      query.setUint32(24, payloads ? 1 : 0, true);
      query.setUint32(28, label === undefined ? 0 : labelsAt, true);
      return core.withCopy(query, (at) => {
        core.call("search_new", this.handle, at, core.scratch);
        return new Search(core, core.view(core.scratch).getUint32(0, true));
      });
    }));
  }

  free() { this.core.exports.privatemail_session_free(this.handle); }
}

class Search {
  constructor(core, handle) {
    this.core = core;
    this.handle = handle;
  }

  /** The next request; its method is "" once all are answered. */
  next(again) {
    const {core} = this;
    core.call("search_next", this.handle, again ? 1 : 0, core.scratch);
    const view = core.view(core.scratch);
    const method = view.getUint32(0, true);
    return {
      method: method === 0 ? "" : core.text(method),
      request: core.copy(view.getUint32(4, true), view.getUint32(8, true)),
      interval: Number(view.getBigInt64(16, true)),
    };
  }

  take(message) {
    this.core.withCopy(message, (at) =>
      this.core.call("search_take", this.handle, at, message.byteLength));
  }

  /** Decrypts and ranks. */
  matches(target) {
    const {core} = this;
    const matches = [];
    for (let rank = 0;; ++rank) {
      core.call("search_match", this.handle, target, rank, core.scratch);
      const view = core.view(core.scratch);
      const id = view.getUint32(0, true);
      if (id === 0) return matches;
      const payload = core.text(view.getUint32(8, true), view.getUint32(12, true));
      matches.push({
        id: core.text(id, view.getUint32(4, true)),
        label: view.getUint32(36, true) === 0 ? null : view.getInt32(32, true),
        similarity: view.getFloat64(16, true),
        squaredDistance: view.getFloat64(24, true),
        payload: parsePayload(payload),
      });
    }
  }

  free() { this.core.exports.privatemail_search_free(this.handle); }
}

// null: none, or one that this parser does not take. An error would tell a server that repeats are due to a match.
function parsePayload(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
