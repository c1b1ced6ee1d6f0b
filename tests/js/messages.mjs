// Protobuf messages of a server and its view of requests, for tests without one.
import {createHash} from "node:crypto";

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest();

function varint(value) {
  const bytes = [];
  for (value = BigInt(value); value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  return Buffer.from([...bytes, Number(value)]);
}

/** A message of [field, value] pairs: numbers are varints, others bytes. */
export const encode = (...fields) => Buffer.concat(fields.flatMap(([field, value]) =>
  typeof value === "number" ? [varint(field << 3), varint(value)]
                            : [varint(field << 3 | 2), varint(value.length), Buffer.from(value)]));

/** The fields of a message with varints and bytes: number -> values. */
export function decode(bytes) {
  const fields = {};
  let at = 0;
  const read = () => {
    let value = 0n;
    for (let shift = 0n;; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  };
  while (at < bytes.length) {
    const tag = read();
    let value = read();
    if (tag & 7) value = bytes.subarray(at, at += value);
    (fields[tag >> 3] ??= []).push(value);
  }
  return fields;
}

export const describe = ({name = "things", dimensions, delta, rows, metric = 1}) => encode(
  [1, encode([1, "uuid"], [3, dimensions], [4, "vectors"], [13, metric], [14, 1])],
  [2, Buffer.alloc(32, 1)], [6, name], [17, encode([1, delta], [2, rows])]);

export const tableBlock = (ids) => encode(
  ...ids.map((id) => [1, id]), [2, Buffer.from(new Float32Array(ids.length).fill(1).buffer)]);

export const header = (items, blocks) => encode([1, encode([2, 7], [3, items], [4, Buffer.concat(blocks.map(sha256))])]);
export const block = (index, content) => encode([2, encode([1, index], [2, content])]);
export const scores = (answers) => encode([4, encode([3, answers])]);
