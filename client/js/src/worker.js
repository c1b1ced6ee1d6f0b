// The worker of a connection: answers one question at a time.
import {Engine} from "./engine.js";

let engine = null;
let queue = Promise.resolve();

function listen(port) {
  return ({options, number, call, args}) => {
    if (options) {
      engine = Engine.open(options);
      engine.catch(() => {});  // each question reports it
      return;
    }
    queue = queue.then(async () => {
      try {
        port.postMessage({number, value: await (await engine)[call](...args)});
      } catch (error) {
        port.postMessage({number, error: {code: error.code ?? "INTERNAL", message: error.message}});
      }
    });
  };
}

if (typeof WorkerGlobalScope === "undefined") {
  const {parentPort} = await import("node:worker_threads");
  parentPort.on("message", listen(parentPort));
} else {
  const take = listen(globalThis);
  globalThis.onmessage = (event) => take(event.data);
}
