// Private search from JavaScript: a connection whose keys, encryption and ranking live in a worker.
import {PrivateMailError} from "./src/error.js";

export {PrivateMailError};

// By server: when its closed connections have reached a departure. A new connection waits for it, as its first request
// would otherwise tell when the last ranking ended.
const closing = new Map();

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The connection to a server: its worker holds the keys, which end with it. See index.d.ts. */
export function connect(url, {key, cache = true, timeout = 30_000} = {}) {
  let base;
  try {
    base = new URL(url);
  } catch {
    throw new PrivateMailError("INVALID_ARGUMENT",
                               `url must be an address such as https://search.example, but is ${url}`);
  }
  if (base.protocol !== "https:" && !LOOPBACK.has(base.hostname)) {
    throw new PrivateMailError("INVALID_ARGUMENT", `url must begin with https://, but is ${base.protocol}//: ` +
                               "the key would be sent in clear");
  }
  const worker = openWorker({url: base.href.replace(/\/+$/, ""), key, cache, timeout});
  return {
    collection: (name) => ({
      name,
      search: async (target, options = {}) => (await worker.ask("search", [name, [target], options]))[0],
      searchAll: (targets, options = {}) => worker.ask("search", [name, targets, options]),
      describe: () => worker.ask("describe", [name]),
    }),
    close: () => worker.close(),
  };
}

function openWorker(options) {
  const waiting = new Map();  // what settles each question, by its number
  let last = 0;
  let ended = null;
  const end = (error) => {
    ended ??= error;
    for (const {reject} of waiting.values()) reject(ended);
    waiting.clear();
  };
  const opened = Promise.resolve(closing.get(options.url)).then(() => startWorker((answer) => {
    const {resolve, reject} = waiting.get(answer.number) ?? {};
    waiting.delete(answer.number);
    if (answer.error) reject?.(new PrivateMailError(answer.error.code, answer.error.message));
    else resolve?.(answer.value);
  }, (text) => end(new PrivateMailError("INTERNAL", `the worker failed: ${text}`))));
  opened.then((worker) => worker.postMessage({options})).catch((error) => end(error));
  return {
    ask: (call, args) => new Promise((resolve, reject) => {
      if (ended) return reject(ended);
      const number = ++last;
      waiting.set(number, {resolve, reject});
      opened.then((worker) => worker.postMessage({number, call, args})).catch(reject);
    }),
    close: () => {
      const departed = ended ? Promise.resolve(closing.get(options.url)) : new Promise((resolve) => {
        end(new PrivateMailError("FAILED_PRECONDITION", "the connection is closed"));
        const number = ++last;
        waiting.set(number, {resolve, reject: resolve});
        opened.then((worker) => worker.postMessage({number, call: "depart", args: []})).catch(resolve);
      });
      const closed = departed.then(async () => (await opened).terminate()).then(() => {}, () => {});
      closing.set(options.url, closed);
      return closed;
    },
  };
}

async function startWorker(onMessage, onError) {
  const file = new URL("./src/worker.js", import.meta.url);
  if (typeof Worker === "function") {
    const worker = new Worker(file, {type: "module"});
    worker.onmessage = (event) => onMessage(event.data);
    worker.onerror = (event) => onError(event.message ?? "it cannot be loaded");
    return worker;
  }
  const threads = await import("node:worker_threads");
  const worker = new threads.Worker(file);
  worker.on("message", onMessage);
  worker.on("error", (error) => onError(error.message));
  return worker;
}
