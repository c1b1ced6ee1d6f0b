// Searches for rows of a .npy file of float32, one after another, and prints a JSON line for each.
// usage: search.mjs PACKAGE URL KEY_FILE COLLECTION TARGETS K COUNT
import {readFileSync} from "node:fs";
import {pathToFileURL} from "node:url";

const [folder, url, keyFile, collection, file, k, count] = process.argv.slice(2);
const {connect} = await import(pathToFileURL(`${folder}/index.js`));
const bytes = readFileSync(file);
const start = 10 + bytes.readUInt16LE(8);
const [, rows, columns] = /\((\d+), (\d+)\)/.exec(bytes.subarray(10, start).toString()).map(Number);
const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + start + 4 * rows * columns));
const connection = connect(url, {key: readFileSync(keyFile, "utf8").trim()});
const things = connection.collection(collection);
for (let row = 0; row < Number(count); ++row) {
  const target = values.subarray(row * columns, (row + 1) * columns);
  const result = await things.search(target, {k: Number(k)}).catch((error) => ({error: `${error.code}: ${error.message}`}));
  console.log(JSON.stringify(result));
}
await connection.close();
