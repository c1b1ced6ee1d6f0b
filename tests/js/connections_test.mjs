// The order of connections and their workers, with workers that this test plays.
import assert from "node:assert/strict";
import {test} from "node:test";

const workers = [];
globalThis.Worker = class {
  constructor() {
    this.asked = [];
    this.ended = false;
    workers.push(this);
  }
  postMessage(message) { this.asked.push(message); }
  terminate() { this.ended = true; }
  answer(number) { this.onmessage({data: {number}}); }
};
const {connect} = await import(`${process.env.PRIVATEMAIL_JS}/index.js`);
const {Engine} = await import(`${process.env.PRIVATEMAIL_JS}/src/engine.js`);
const {Transport} = await import(`${process.env.PRIVATEMAIL_JS}/src/transport.js`);

// Runs all that does not wait for a worker.
const settle = () => new Promise((resolve) => setTimeout(resolve));

test("A new connection waits for the departure of a closed one to the same server", async () => {
  const first = connect("http://localhost:1/");
  first.collection("things").describe().catch(() => {});
  await settle();
  const closed = first.close();
  await settle();
  const depart = workers[0].asked.at(-1);
  assert.equal(depart.call, "depart");

  const second = connect("http://localhost:1");
  const description = second.collection("things").describe();
  connect("http://localhost:2");
  await settle();
  assert.equal(workers.length, 2, "the one to another server waits for nothing");
  assert.equal(workers[0].ended, false);

  workers[0].answer(depart.number);
  await closed;
  assert.equal(workers[0].ended, true);
  await settle();
  assert.equal(workers.length, 3);
  const [, {number, call}] = workers[2].asked;
  assert.equal(call, "describe");
  workers[2].answer(number);
  await description;
});

test("Calls of a closed connection fail, as do those that wait", async () => {
  const connection = connect("http://localhost:3");
  const waiting = connection.collection("things").describe();
  connection.close();
  for (const call of [waiting, connection.collection("things").search([1])]) {
    await assert.rejects(call, {code: "FAILED_PRECONDITION", message: "the connection is closed"});
  }
});

test("What is no address or no option is refused by name", async () => {
  assert.throws(() => connect("fruit"), {code: "INVALID_ARGUMENT", message: /url must be an address .* but is fruit/});
  const searched = new Engine(null, null, {}).search("fruit", [[1]], {filter: {}});
  await assert.rejects(searched, {code: "INVALID_ARGUMENT", message: /takes k, payloads and label, but not filter/});
});

test("A cancelled call has the code that the other clients give it, and repeat", async () => {
  globalThis.fetch = async () => new Response('{"code": "canceled"}', {status: 499});
  const call = new Transport({url: "http://localhost:1"}).call("/S/M", new Uint8Array(), () => {}, performance.now() + 1e4);
  await assert.rejects(call, {code: "CANCELLED"});
});
