// Calls of the official clients: connect-node and connect-web, in both encodings, against a daemon with keys.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport as createNodeTransport } from "@connectrpc/connect-node";
import { createConnectTransport as createWebTransport } from "@connectrpc/connect-web";
import { CollectionsService } from "./generated/privatemail/v1/collections_pb.js";
import { EncryptedService } from "./generated/privatemail/v1/encrypted_pb.js";
import { KeysService } from "./generated/privatemail/v1/keys_pb.js";
import { Kernel, LabelGraph, Metric, Start } from "./generated/privatemail/v1/parameters_pb.js";
import { RetrievalService } from "./generated/privatemail/v1/retrieval_pb.js";

const DAEMON = process.env.PRIVATEMAILD;
const LABELS = 3, ANCHORS = 12, DIM = 4;
let daemon, folder, baseUrl, adminKey;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "privatemail_js_"));
  daemon = spawn(DAEMON, ["--data-dir", join(folder, "data"), "--listen", "127.0.0.1:0", "--http-listen",
    "127.0.0.1:0"], { stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface({ input: daemon.stdout })) {
    if (line.startsWith("RPCs over HTTP: ")) baseUrl = line.slice("RPCs over HTTP: ".length);
    if (line.startsWith("listening on ")) break;
  }
  adminKey = readFileSync(join(folder, "data", "admin.key"), "utf8").trim();
});

after(() => {
  daemon.kill();
  rmSync(folder, { recursive: true });
});

const transports = [];
for (const [name, create] of [["node", (options) => createNodeTransport({ httpVersion: "1.1", ...options })],
  ["web", createWebTransport]]) {
  for (const useBinaryFormat of [true, false]) {
    transports.push([`${name}_${useBinaryFormat ? "proto" : "json"}`, (key = adminKey) => create({
      baseUrl, useBinaryFormat,
      interceptors: [(next) => (request) => {
        request.header.set("authorization", `Bearer ${key}`);
        return next(request);
      }],
    })]);
  }
}

const fails = (call, code, part = "") => assert.rejects(call, (error) => {
  assert.ok(error instanceof ConnectError, `${error}`);
  assert.strictEqual(Code[error.code], Code[code], error.message);
  assert.ok(error.message.includes(part), error.message);
  return true;
});

// Makes rows near the axis of their class.
const features = (rows) => Array.from({ length: rows * DIM }, (_, i) =>
  Math.random() / 4 + (i % DIM === Math.floor(i / DIM) % LABELS ? 1 : 0));
const labelled = (name) => ({
  name, metric: Metric.COSINE, extractor: "vectors",
  settings: { kernelBandwidth: 6, alpha: .1, kernel: Kernel.TWO_SIGMA_SQUARED, labelGraph: LabelGraph.DISTANCE,
    embeddingDim: 2, steps: 5, normalise: true, startStddev: 1, start: Start.RANDOM },
  anchors: { rows: ANCHORS, cols: DIM, values: features(ANCHORS) },
  anchorLabels: Array.from({ length: ANCHORS }, (_, i) => i % LABELS),
});
const items = (count) => {
  const values = features(count);
  return Array.from({ length: count }, (_, i) => ({ id: `item-${i}`, label: i % LABELS,
    features: values.slice(i * DIM, (i + 1) * DIM), payload: JSON.stringify({ number: i }) }));
};

for (const [name, transport] of transports) {
  test(`${name}: unary calls, errors and an upload`, async () => {
    const collections = createClient(CollectionsService, transport());
    const created = await collections.createCollection({ name, metric: Metric.COSINE, extractor: "vectors" });
    assert.strictEqual(created.collection.name, name);
    assert.strictEqual(created.collection.fingerprint.length, 32);
    await fails(collections.createCollection({ name, metric: Metric.COSINE, extractor: "vectors" }), Code.AlreadyExists);
    await fails(collections.countItems({ collection: "none" }), Code.NotFound, "none");
    await fails(createClient(CollectionsService, transport("pm_junk")).listCollections({}), Code.Unauthenticated);
    const stored = items(40);
    if (name.startsWith("node")) {  // browsers cannot stream requests
      const upload = await collections.upsertItems((async function* () {
        yield { collection: name, items: stored.slice(0, 25) };
        yield { collection: name, items: stored.slice(25) };
      })());
      assert.strictEqual(upload.inserted, 40n);
    } else {  // one message, as by curl
      const response = await fetch(`${baseUrl}/privatemail.v1.CollectionsService/UpsertItems`, {
        method: "POST", body: JSON.stringify({ collection: name, items: stored }),
        headers: { "content-type": "application/json", authorization: `Bearer ${adminKey}` } });
      assert.strictEqual((await response.json()).inserted, "40");
    }
    assert.strictEqual((await collections.countItems({ collection: name })).items, 40n);
    const { items: [first] } = await collections.getItems({ collection: name, ids: ["item-7"] });
    assert.deepStrictEqual(first.features.map(Math.fround), stored[7].features.map(Math.fround));
    assert.strictEqual(first.payload, stored[7].payload);
    assert.strictEqual((await collections.deleteItems({ collection: name, ids: ["item-7", "none"] })).deleted, 1n);
    const info = await createClient(RetrievalService, transport()).getCollection({ collection: name });
    assert.strictEqual(info.items, 39n);
  });

  test(`${name}: streams of answers`, async () => {
    const collections = createClient(CollectionsService, transport());
    const labels = `labels_${name}`;
    await collections.createCollection(labelled(labels));
    const all = items(30);
    const response = await fetch(`${baseUrl}/privatemail.v1.CollectionsService/UpsertItems`, {
      method: "POST", body: JSON.stringify({ collection: labels, items: all }),
      headers: { "content-type": "application/json", authorization: `Bearer ${adminKey}` } });
    assert.strictEqual(response.status, 200, await response.text());
    const steps = [];
    for await (const step of collections.buildEmbedding({ collection: labels, acceptMisalignment: true })) steps.push(step);
    assert.ok(steps.length > 1);
    const { collection } = steps.at(-1);
    assert.strictEqual(collection.embeddedItems, 30n);
    const retrieval = createClient(RetrievalService, transport());
    let anchors = 0;
    for await (const chunk of retrieval.getAnchors({ collection: labels, fingerprint: collection.fingerprint })) {
      anchors += chunk.features.rows;
    }
    assert.strictEqual(anchors, ANCHORS);
    const bytes = [];
    for await (const { data } of collections.snapshotCollection({ collection: labels })) bytes.push(data);
    assert.ok(Buffer.concat(bytes).length > 1000);
    const broken = retrieval.getAnchors({ collection: labels, fingerprint: new Uint8Array(32) });
    await fails((async () => { for await (const _ of broken); })(), Code.FailedPrecondition, "fingerprint");
    const encrypted = createClient(EncryptedService, transport()).searchEncrypted({ collection: labels });
    await fails((async () => { for await (const _ of encrypted); })(), Code.FailedPrecondition);
  });

  test(`${name}: rate, deadline and cancellation`, async () => {
    const { text } = await createClient(KeysService, transport()).createKey({ name: "slow", scopes: [1], requestsPerSecond: .001 });
    const limited = createClient(CollectionsService, transport(text));
    await limited.listCollections({});
    await assert.rejects(limited.listCollections({}), (error) => {
      assert.strictEqual(error.code, Code.ResourceExhausted, error.message);
      assert.ok(Number(error.metadata.get("retry-after-ms")) > 1000, `${[...error.metadata]}`);
      return true;
    });
    const collections = createClient(CollectionsService, transport());
    const slow = labelled(`slow_${name}`);
    await collections.createCollection({ ...slow, settings: {
      ...slow.settings, steps: 10000, alpha: 1e4, labelGraph: LabelGraph.BALANCED, start: Start.CLASSES } });
    await fetch(`${baseUrl}/privatemail.v1.CollectionsService/UpsertItems`, {
      method: "POST", body: JSON.stringify({ collection: slow.name, items: items(3000) }),
      headers: { "content-type": "application/json", authorization: `Bearer ${adminKey}` } });
    const build = (options) => (async () => {
      for await (const _ of collections.buildEmbedding({ collection: slow.name, acceptMisalignment: true }, options));
    })();
    const end = async (codes) => {
      for (let tries = 0; ; ++tries) {
        const audited = readFileSync(join(folder, "data", "audit.jsonl"), "utf8").split("\n")
          .filter((line) => line.includes(`"BuildEmbedding","collection":"slow_${name}"`)).map(JSON.parse);
        if (audited.length === codes.length) return assert.deepStrictEqual(audited.map(({ code }) => code), codes);
        assert.ok(tries < 300, "the build goes on");
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    await fails(build({ timeoutMs: 300 }), Code.DeadlineExceeded);
    await end(["DEADLINE_EXCEEDED"]);
    const abort = new AbortController();
    const cancelled = fails(build({ signal: abort.signal }), Code.Canceled);
    setTimeout(() => abort.abort(), 300);
    await cancelled;
    await end(["DEADLINE_EXCEEDED", "CANCELLED"]);
  });
}
