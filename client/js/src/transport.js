// Calls of a server by the Connect protocol (https://connectrpc.com/docs/protocol).
import {PrivateMailError} from "./error.js";

const MAX_MESSAGE_BYTES = 64 << 20;
const MAX_BODY_BYTES = 8 << 20;  // of an answer that is no stream
const END_OF_STREAM = 2;  // flag of an envelope

/** A failed call. retryAfter: milliseconds until the key's rate allows it, or null. */
class CallError extends PrivateMailError {
  constructor(code, message, retryAfter = null) {
    super(code, message);
    this.retryAfter = retryAfter;
  }
}

// The error of a body {"code": "not_found", "message": ...}.
function toError({code, message}, retryAfter, otherwise) {
  const known = typeof code === "string" ? code.toUpperCase() : "UNAVAILABLE";
  return new CallError(known === "CANCELED" ? "CANCELLED" : known,  // as the other clients write it
                       message ?? otherwise, /^\d+$/.test(retryAfter ?? "") ? Number(retryAfter) : null);
}

function parseJson(bytes) {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

export class Transport {
  constructor({url, key, timeout}) {
    this.url = url;
    this.key = key;
    this.timeout = timeout;
  }

  /** Calls once, and gives each message of the response to `take`, whose errors end the call. */
  async call(method, request, take, deadline) {
    const isStream = method.endsWith("/SearchEncrypted");
    const left = Math.max(1, Math.ceil(deadline - performance.now()));
    const headers = {
      "content-type": isStream ? "application/connect+proto" : "application/proto",
      "connect-protocol-version": "1",
      "connect-timeout-ms": String(left),
    };
    if (this.key !== undefined) headers.authorization = `Bearer ${this.key}`;
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), left);
    try {
      const response = await fetch(this.url + method, {
        method: "POST", headers, body: isStream ? inEnvelope(request) : request, signal: abort.signal,
        cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
      });
      if (isStream && response.ok) return await readStream(response.body.getReader(), take);
      const body = await readAll(response.body.getReader());
      if (response.ok) return take(body);
      const code = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "UNIMPLEMENTED"}[response.status];
      throw toError({code, ...parseJson(body)}, response.headers.get("trailer-retry-after-ms"),
                    `the server answered with HTTP status ${response.status}`);
    } catch (error) {
      if (error instanceof PrivateMailError || error instanceof WebAssembly.RuntimeError) throw error;
      if (abort.signal.aborted) throw new CallError("DEADLINE_EXCEEDED", `no answer within ${this.timeout} ms`);
      throw new CallError("UNAVAILABLE", `${this.url} cannot be reached: ${error.message}`);
    } finally {
      clearTimeout(timer);
      abort.abort();  // of a stream that was refused
    }
  }
}

// A description or an error.
async function readAll(reader) {
  const parts = [];
  let length = 0;
  for (let next; !(next = await reader.read()).done; length += next.value.byteLength) {
    if (length + next.value.byteLength > MAX_BODY_BYTES) {
      throw new PrivateMailError("DATA_LOSS", `an answer must have at most ${MAX_BODY_BYTES} bytes, but has more`);
    }
    parts.push(next.value);
  }
  return joined(parts, length);
}

function joined(parts, length) {
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) all.set(part, (at += part.byteLength) - part.byteLength);
  return all;
}

function inEnvelope(message) {
  const bytes = new Uint8Array(5 + message.byteLength);
  new DataView(bytes.buffer).setUint32(1, message.byteLength);
  bytes.set(message, 5);
  return bytes;
}

async function readStream(reader, take) {
  let held = new Uint8Array(0);
  const read = async (size) => {
    const parts = [held];
    let length = held.byteLength;
    while (length < size) {
      const {done, value} = await reader.read();
      if (done) throw new CallError("UNAVAILABLE", "the answer ended early");
      parts.push(value);
      length += value.byteLength;
    }
    const all = parts.length === 1 ? held : joined(parts, length);
    held = all.subarray(size);
    return all.subarray(0, size);
  };
  for (;;) {
    const head = await read(5);
    const flags = head[0], size = new DataView(head.buffer, head.byteOffset).getUint32(1);
    if ((flags & ~END_OF_STREAM) !== 0 || size > MAX_MESSAGE_BYTES) {
      throw new PrivateMailError("DATA_LOSS", `a message of the answer must have at most ${MAX_MESSAGE_BYTES} ` +
                                 `bytes and no compression, but has ${size} and flags ${flags}`);
    }
    const message = await read(size);
    if (flags === 0) {
      take(message);
      continue;
    }
    const {error, metadata} = parseJson(message);
    if (error) throw toError(error, metadata?.["retry-after-ms"]?.[0], "the server refused the call");
    return;
  }
}
