import {cellPanels, drawCurve, element, rowPanels} from "./draw.js";

const at = (id) => document.getElementById(id);
const number = (value, digits = 3) => String(Number(value.toPrecision(digits)));
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const bytes = (count) => `${count.toLocaleString("en")} bytes`;

let collection = null;  // as opened
let budget = null;
let target = null;      // number of the picked target
let busy = false;

// The answer, or an error with the server's message. Names what this page shows: another tab may have opened or
// picked something else.
async function call(path, options = {}) {
  if (collection !== null) path += `${path.includes("?") ? "&" : "?"}digest=${collection.digest}`;
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the program `privatemail page` has ended: start it again");
  }
  if (response.headers.get("Content-Type") !== "application/json") throw new Error((await response.text()).trim());
  const answer = await response.json();
  if (answer?.error) throw new Error(`${answer.error.message} (${answer.error.code})`);
  return answer;
}

function tell(problem) {
  at("problem").textContent = problem ? `Error: ${problem}` : "";
  at("problem").hidden = !problem;
}

// Runs an action of the user; its error is shown. One at a time: an answer belongs to the target and
// collection on the page.
async function act(action) {
  if (busy) return;
  tell("");
  const focused = document.activeElement;
  busy = true;
  show();
  try {
    await action();
  } catch (error) {
    tell(error.message);
  } finally {
    busy = false;
    show();
    if (document.activeElement === document.body) focused?.focus();
  }
}

const scheme = () => document.querySelector("input[name=scheme]:checked")?.value;
const chosen = () => collection.plans[at("epsilon").valueAsNumber];

function show() {
  for (const id of ["collection", "file", "row", "check"]) at(id).disabled = busy;
  at("ask").disabled = busy || target === null || collection === null || !scheme();
  if (collection === null) return;
  const plan = chosen(), cells = scheme() === "cells", encrypted = scheme() === "encrypted";
  at("epsilon").disabled = encrypted;
  at("epsilon-value").textContent = plan.epsilon;
  at("epsilon").setAttribute("aria-valuetext", `epsilon ${plan.epsilon}`);
  drawCurve(at("curve"), cells ? collection.plans : [], plan);
  if (cells && plan.cells) {
    const {fidelity, recall, items, bytes: size} = plan.cells;
    at("expect").textContent = `Expect ${number(8 * fidelity.value, 2)} of the 8 nearest items among 8 matches `
      + `(${number(8 * fidelity.low, 2)} to ${number(8 * fidelity.high, 2)}), and one of the right class with `
      + `probability ${number(recall.value, 2)}, as published by the server; ${items} of ${collection.items} items, `
      + `about ${bytes(size.down)}.`;
  } else if (encrypted) {
    at("expect").textContent = `Finds the exact nearest of ${counted(collection.items, "item")}. Epsilon is not used.`;
  } else {
    const {up, down} = collection.joint_bytes;
    at("expect").textContent = `What it finds is not published. Delta is ${collection.joint_delta}. About ${bytes(up)} `
      + `up and ${bytes(down)} down.`;
  }
  if (budget === null) return;
  const left = budget.queries_left[at("epsilon").valueAsNumber][scheme() ?? "cells"];
  const granted = budget.granted?.epsilon ?? 0;
  at("gauge").max = granted || 1;
  at("gauge").value = Math.min(granted, budget.spent.epsilon);
  at("budget").textContent = encrypted && budget.granted === null ? "Encrypted searches spend none."
    : budget.granted === null
    ? `No budget is set: run privatemail budget set ${collection.name} --epsilon E --delta D, with the --server, `
      + "--trust, --key-file and --state that this page was started with"
    : `Epsilon ${number(budget.spent.epsilon)} of ${number(granted)} is spent, in ${counted(budget.releases, "release")}; `
      + `delta ${number(budget.spent.delta)} of ${number(budget.granted.delta)}. `
      + (encrypted ? "Encrypted searches spend none." : left === null ? "How many queries are left depends on their noise (Gaussian accounting)."
                       : `${left} such ${left === 1 ? "query is" : "queries are"} left.`);
}

async function readBudget() {
  budget = await call("api/budget");
  at("history").replaceChildren(...budget.history.toReversed().map((change) => element("tr", {},
    ...[change.at, change.kind, number(change.epsilon), number(change.delta),
        change.kind === "charge" ? `${change.proven ? "proven" : "NOT proven"}: ${change.source}` : ""]
      .map((text) => element("td", {}, String(text))))));
  show();
}

function forget() {
  target = null;
  for (const id of ["target", "answer", "saw"]) at(id).hidden = true;
  at("file").value = "";
}

async function open(name) {
  collection = null;
  forget();
  show();
  for (const id of ["curve", "history"]) at(id).replaceChildren();
  for (const id of ["expect", "budget"]) at(id).textContent = "";
  collection = await call(`api/collection?name=${encodeURIComponent(name)}`);
  const cells = collection.plans.some((plan) => plan.cells);
  const missing = !cells && collection.cells.length > 0;
  at("no-cells").textContent = missing ? `Cells are not offered: ${collection.no_cells}.` : "";
  at("no-cells").hidden = !missing;
  const offered = {encrypted: collection.schemes.includes("encrypted"), cells, joint: collection.schemes.includes("joint")};
  const radios = [...document.querySelectorAll("input[name=scheme]")];
  for (const radio of radios) radio.disabled = !offered[radio.value];
  const enabled = radios.filter((radio) => !radio.disabled);
  (enabled.find((radio) => radio.value === collection.default_scheme) ?? enabled[0] ?? radios[0]).checked = true;
  at("epsilon").max = collection.plans.length - 1;
  at("epsilon").value = collection.plans.findIndex((plan) => plan.epsilon >= 2);
  await readBudget();
}

function listCollections(list) {
  at("collections").replaceChildren(...list.map((one) => element("tr", {},
    ...[one.name, one.items, one.embedded, one.changes_since_embedding,
        one.build_share === null ? "" : `${Math.round(100 * one.build_share)} % done`, one.classes,
        one.cells.length ? `${one.cells.join(", ")}${one.cells_state ? `: ${one.cells_state}` : ""}` : "none"]
      .map((text) => element("td", {}, String(text))))));
}

async function start() {
  const {collections, first} = await call("api/collections");
  listCollections(collections);
  at("collection").replaceChildren(...collections.map((one) => element("option", {}, one.name)));
  if (collections.length === 0) throw new Error("the server has no collection");
  if (first) at("collection").value = first;
  await open(first || collections[0].name);
}

async function pick() {
  const file = at("file").files[0];
  if (!file) return;
  const vectors = /\.(npy|fvecs|csv)$/i.test(file.name);
  at("row-line").hidden = !vectors;
  target = null;
  for (const id of ["target", "answer", "saw"]) at(id).hidden = true;
  show();
  at("status").textContent = "Computing features…";
  try {
    const row = vectors ? `&row=${at("row").valueAsNumber}` : "";
    const made = await call(`api/target?name=${encodeURIComponent(file.name)}${row}`, {method: "POST", body: file});
    target = made.target;
    URL.revokeObjectURL(at("preview").src);
    at("preview").hidden = vectors;
    if (!vectors) at("preview").src = URL.createObjectURL(file);
    at("picked").textContent = `${file.name}${vectors ? `, row ${at("row").value}` : ""}: ${made.features} features, `
      + `${number(made.milliseconds, 2)} ms`;
    at("target").hidden = false;
    at("status").textContent = "Ready: nothing was sent yet.";
  } catch (error) {
    at("status").textContent = "";
    throw error;
  } finally {
    show();
  }
}

function card(item, text) {
  const alt = `picture of ${item.id}`;
  return element("li", {},
                 ...(item.picture ? [element("img", {src: `picture?id=${encodeURIComponent(item.id)}`, alt})] : []),
                 element("span", {}, text));
}

function showAnswer(answer) {
  // Distances of a joint query are between noisy rows.
  const cells = answer.alignment === undefined;
  at("matches").replaceChildren(...answer.matches.map((match) => card(match,
    (match.class === null || match.id.startsWith(`${match.class}/`) ? match.id : `${match.id}, class ${match.class}`)
    + (answer.scheme === "encrypted" ? ` · similarity ${number(match.similarity, 4)}`
      : cells ? ` · squared distance ${number(match.squared_distance, 2)}` : "") + (match.payload === null ? "" : ` · ${JSON.stringify(match.payload)}`))));
  at("sentence").textContent = answer.sentence;
  const residual = answer.alignment?.relative_residual;
  at("warnings").replaceChildren(...answer.warnings.map((text) => element("li", {}, text)));
  at("bytes-title").parentElement.hidden = answer.scheme === "encrypted";
  if (answer.scheme === "encrypted") {
    at("facts").textContent = `The nearest of ${counted(answer.candidates, "item")}. ${bytes(answer.bytes.up)} up, `
      + `${bytes(answer.bytes.down)} down. Once: keys ${bytes(answer.bytes.keys)} up, and the table of ids `
      + `${bytes(answer.bytes.table + answer.bytes.payloads)} down.`;
    at("saw-text").textContent = "Ciphertexts, which look like random numbers for every picture. Their number and "
      + "sizes depend on the collection alone.";
    at("releases").replaceChildren();
    at("answer").hidden = at("saw").hidden = false;
    at("answer-title").focus();
    return;
  }
  at("facts").textContent = `Spent epsilon ${number(answer.guarantee.epsilon)}, delta ${number(answer.guarantee.delta)}; `
    + `left epsilon ${number(answer.ledger.left.epsilon)}. ${bytes(answer.bytes.up)} up, ${bytes(answer.bytes.down)} down`
    + (residual === undefined ? "." : `; alignment residual ${number(residual)} (0 is a perfect fit).`);
  const {seen, sent} = answer;
  at("saw-text").textContent = seen === null ? "It cannot be drawn." : seen.slots
    ? "One row for each class (dots) and for each anchor (specks), after the noise and as the server aligns them to "
      + "its own anchors (circles); without much noise they lie under the dots. The guarantee above bounds how well it can tell which dot holds a picture."
    : "The number of a cell, drawn at random in favour of the target's own. The guarantee above bounds how well it can "
      + "tell which cell holds the picture: little at a small epsilon, nearly surely at 8.";
  at("saw-text").textContent += " The releases to compare with were drawn afresh for public targets and stayed here: "
    + "they are neither sent nor saved, and cost nothing.";
  at("releases").replaceChildren(...(seen === null ? [] : seen.slots ? rowPanels(seen) : cellPanels(seen)));
  at("bytes-title").textContent = `The request: ${bytes(sent.bytes)}`;
  at("bytes").textContent = sent.hex.match(/.{1,32}/g).map((line) => line.match(/../g).join(" ")).join("\n")
    + (sent.hex.length < 2 * sent.bytes ? "\n…" : "");
  at("answer").hidden = at("saw").hidden = false;
  at("answer-title").focus();
}

async function compare() {
  at("compared").hidden = !collection.pictures;
  if (!collection.pictures) return;
  at("nearest").replaceChildren(element("li", {}, "Computing features of your pictures…"));
  const asked = target;
  const nearest = await call(`api/nearest?target=${asked}`);
  if (asked !== target) return;
  if (nearest === null) setTimeout(() => asked === target && compare().catch((error) => tell(error.message)), 500);
  else at("nearest").replaceChildren(...nearest.map((item) => card(item, item.id)));
}

async function ask() {
  for (const id of ["answer", "saw"]) at(id).hidden = true;
  at("status").textContent = "Asking…";
  try {
    const body = JSON.stringify({target, scheme: scheme(), epsilon: chosen().epsilon, payloads: at("payloads").checked});
    const answer = await call("api/ask", {method: "POST", body});
    showAnswer(answer);
    at("status").textContent = answer.scheme === "encrypted" ? "Answered." : "Answered. `privatemail resend` sends the same request again and costs nothing.";
  } catch (error) {
    at("status").textContent = "";
    throw error;
  } finally {
    await readBudget();  // a failed query may have been charged
  }
  compare().catch((error) => tell(error.message));
}

async function check() {
  const {collections} = await call("api/collections");
  listCollections(collections);
  at("health").textContent = "Checking…";
  try {
    const {alignment, warnings = []} = await call(`api/details?name=${encodeURIComponent(at("collection").value)}`);
    at("health").textContent = [alignment
      ? `Without noise: expected recall ${number(alignment.expected_recall)}, residual `
        + `${number(alignment.expected_relative_residual)}.`
      : "The alignment is not known.", ...warnings].join(" ");
  } catch (error) {
    at("health").textContent = "";
    throw error;
  }
}

at("collection").addEventListener("change", () => act(() => open(at("collection").value)));
at("file").addEventListener("change", () => act(pick));
at("file").addEventListener("click", () => { at("file").value = ""; });  // the same file again
addEventListener("beforeunload", (event) => { if (busy) event.preventDefault(); });  // an answer is paid
at("row").addEventListener("change", () => act(pick));
at("ask").addEventListener("click", () => act(ask));
at("check").addEventListener("click", () => act(check));
at("epsilon").addEventListener("input", show);
for (const radio of document.querySelectorAll("input[name=scheme]")) radio.addEventListener("change", show);
for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
at("drop").addEventListener("dragover", () => at("drop").classList.add("over"));
at("drop").addEventListener("dragleave", () => at("drop").classList.remove("over"));
at("drop").addEventListener("drop", (event) => {
  at("drop").classList.remove("over");
  if (busy || event.dataTransfer.files.length === 0) return;
  at("file").files = event.dataTransfer.files;
  act(pick);
});
act(start);
