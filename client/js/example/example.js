// The program of index.html: features by MobileNetV2 in this page, encryption and ranking in the package's worker.
import * as ort from "./ort/ort.wasm.min.mjs";
import {connect} from "./privatemail/index.js";

const COLLECTION = "fruit";
const SIDE = 128;  // of the picture that the model takes

const element = (id) => document.getElementById(id);
const say = (text) => { element("status").textContent = text; };

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
const model = ort.InferenceSession.create(new URL("./mobilenet_v2.onnx", import.meta.url).href);

// All photographs, by id. They are loaded before any search, because loading a match would tell which it is.
const photographs = (async () => {
  const ids = await (await fetch("photographs.json")).json();
  const load = async (id) => {
    const response = await fetch(`photographs/${id.split("/").map(encodeURIComponent).join("/")}`);
    if (!response.ok) throw new Error(`photograph ${id} is missing`);
    return [id, URL.createObjectURL(await response.blob())];
  };
  return new Map(await Promise.all(ids.map(load)));
})();

// Computes what the command line does with the same model: the whole picture stretched to the side, R, G and B in planes.
async function featuresOf(file) {
  const picture = await createImageBitmap(file, {resizeWidth: SIDE, resizeHeight: SIDE, resizeQuality: "medium"});
  const context = new OffscreenCanvas(SIDE, SIDE).getContext("2d");
  context.fillStyle = "white";  // behind what is transparent
  context.fillRect(0, 0, SIDE, SIDE);
  context.drawImage(picture, 0, 0);
  const pixels = context.getImageData(0, 0, SIDE, SIDE).data;
  const input = new Float32Array(3 * SIDE * SIDE);
  for (let i = 0; i < SIDE * SIDE; ++i) {
    for (let channel = 0; channel < 3; ++channel) input[channel * SIDE * SIDE + i] = pixels[4 * i + channel];
  }
  const session = await model;
  const output = await session.run({[session.inputNames[0]]: new ort.Tensor("float32", input, [1, 3, SIDE, SIDE])});
  return output[session.outputNames[0]].data;
}

let features = null;
let connection = null;

element("file").addEventListener("change", async ({target}) => {
  element("search").disabled = true;
  const [file] = target.files;
  if (!file) return;
  element("own").src = URL.createObjectURL(file);
  element("own").hidden = false;
  try {
    say("Computing features ...");
    features = await featuresOf(file);
    await photographs;
    say("");
    element("search").disabled = false;
  } catch (error) {
    say(`This cannot be searched for: ${error.message}`);
  }
});
element("key").addEventListener("change", () => {
  connection?.close();
  connection = null;
});

element("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  element("search").disabled = true;
  say("Searching ...");
  try {
    connection ??= connect(location.origin, {key: element("key").value.trim()});
    const {matches, items, times} = await connection.collection(COLLECTION).search(features, {k: 8});
    const loaded = await photographs;
    element("matches").replaceChildren(...matches.map(({id, similarity}) => {
      const item = document.createElement("li"), image = document.createElement("img");
      if (loaded.has(id)) image.src = loaded.get(id);  // never fetched now
      image.alt = id;
      item.append(image, `${id.split("/")[0]}, ${similarity.toFixed(2)}`);
      return item;
    }));
    say(`The nearest of ${items} photographs. Encryption ${times.encryption.toFixed(0)} ms, ` +
        `ranking ${times.ranking.toFixed(0)} ms.`);
  } catch (error) {
    say(`The search failed: ${error.message}`);
  }
  element("search").disabled = false;
});

photographs.then((all) => say(features ? "" : `${all.size} photographs are loaded. Choose yours.`),
                 (error) => say(error.message));
