// The core in WebAssembly against tests/golden/lattice_golden.json, from given random bytes.
import assert from "node:assert/strict";
import {createHash} from "node:crypto";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {block, decode, describe, header, scores, sha256, tableBlock} from "./messages.mjs";

const ROWS = 2048;
const golden = JSON.parse(readFileSync(new URL("../golden/lattice_golden.json", import.meta.url)));
const {Core, Session} = await import(`${process.env.PRIVATEMAIL_JS}/src/core.js`);
const module = new WebAssembly.Module(readFileSync(`${process.env.PRIVATEMAIL_JS}/core.wasm`));

const bytesOf = (name, outputLength) => createHash("shake128", {outputLength}).update(`golden ${name}`).digest();

function stream(name, count, bound) {
  const bytes = bytesOf(name, 8 * count);
  return Array.from({length: count}, (_, i) => bytes.readBigUInt64LE(8 * i) % (2n * bound + 1n) - bound);
}

// The bytes that the C++ test's GivenBits hands out (tests/golden/encrypted_client_golden_test.cc).
function randomBytes({name, delta, dimensions}) {
  const secret = Buffer.alloc(ROWS / 2);
  stream(`secret ${name}`, ROWS, 1n).forEach((value, i) => { secret[i >> 2] |= Number(value + 1n) << 2 * (i % 4); });
  const errors = (of) => {
    const words = bytesOf(of, 8 * ROWS);
    return Buffer.concat(Array.from({length: ROWS}, (_, i) => words.subarray(8 * i, 8 * i + 6)));
  };
  const parts = [secret, bytesOf(`seed of keys ${name}`, 32)];
  for (let i = 0; i < 2 * Math.log2(delta); ++i) parts.push(errors(`key error ${i} ${name}`));
  parts.push(bytesOf(`seed of query ${name}`, 32));
  for (let chunk = 0; chunk < Math.ceil(dimensions / delta); ++chunk) parts.push(errors(`query error ${chunk} ${name}`));
  return Buffer.concat(parts);
}

function answerOf(name) {
  let bits = 0n, count = 0n;
  const bytes = [];
  for (const [part, width] of [["a", 20n], ["b", 16n]]) {
    for (const value of stream(`answer ${part} ${name}`, ROWS, 1n << 40n)) {
      bits |= (value & ((1n << width) - 1n)) << count;
      for (count += width; count >= 8n; count -= 8n, bits >>= 8n) bytes.push(Number(bits & 255n));
    }
  }
  return Buffer.from(bytes);
}

for (const client of golden.clients) {
  test(`Core, keys, query and decryption of ${client.name} are the golden ones`, () => {
    let random = randomBytes(client);
    const core = new Core(module, (bytes) => {
      assert.ok(random.length >= bytes.length);
      bytes.set(random.subarray(0, bytes.length));
      random = random.subarray(bytes.length);
    });
    const session = new Session(core, "things");
    const target = Float32Array.from(stream(`vector ${client.name}`, client.dimensions, 1000n), Number);
    const search = session.search([target], {k: ROWS});
    assert.equal(search.next(false).method, "/privatemail.v1.RetrievalService/GetCollection");
    search.take(describe({dimensions: client.dimensions, delta: client.delta, rows: ROWS}));
    const request = decode(search.next(false).request);
    assert.equal(random.length, 0);
    assert.equal(sha256(request[5][0]).toString("hex"), client.keys_sha256);
    const query = decode(request[6][0]);
    assert.deepEqual(Buffer.from(query[1][0]), bytesOf(`seed of query ${client.name}`, 32));
    assert.equal(sha256(query[2][0]).toString("hex"), client.query_sha256);

    const table = tableBlock(Array.from({length: ROWS}, (_, row) => `${row}`));
    for (const message of [header(ROWS, [table]), block(0, table), scores(answerOf(client.name))]) search.take(message);
    assert.equal(search.next(false).method, "");
    const similarity = new Map(search.matches(0).map((match) => [match.id, match.similarity]));
    assert.equal(similarity.size, ROWS);
    for (const [row, decrypted] of Object.entries(client.decrypted)) {
      const cosine = Math.round(1.01 * decrypted / 2 ** 19 * 1e4) / 1e4;
      assert.ok(Math.abs(similarity.get(row) - Math.max(-1, Math.min(1, cosine))) < 1e-9, `row ${row}`);
    }
  });
}
