import {at, call, counted, element, listCollections, named, openCollection} from "./common.js";

// The schemes in everyday words. know: what the server can and cannot know.
const schemes = {
  encrypted: {
    title: "Encrypted", button: "Search",
    found: (n, of) => `The closest ${n} of ${of}. The server does not know which.`,
    described: "They are encrypted with a key that stays here.",
    step: "Your computer encrypts a description, the server compares it without reading it, and your computer opens the answer.",
    seen: "Any other choice makes bytes of the same size that look just as random. The server compares them with everything that it has.",
    know: ["It knows that you searched, when and how often, and in which collection.",
           "It cannot know your choice, what was found, or which match you open.",
           "Even a dishonest server learns nothing more: at worst it sends you a wrong answer."],
  },
  cells: {
    title: "Cells", button: "Search by cells",
    text: "The server sees a group that is chosen partly at random, and sends that group. Your computer picks the best ones.",
    price: ({finds}) => `finds about ${Math.round(8 * finds)} of the 8 closest`,
    found: (n, of, way) => `Found by cells among ${of}: about ${Math.round(8 * (way?.finds ?? 0))} of 8 are the closest of all.`,
    described: "They choose a group, partly at random.",
    step: "Your computer chooses a group partly at random, the server sends it, and your computer picks the best ones.",
    seen: "The number of a group. Your choice makes its own group likelier, but any group may be drawn.",
    know: ["It knows that you searched, when and how often, and one group that was chosen partly at random.",
           "It cannot be sure that your choice is of this group, and it cannot know which match you open.",
           "Each of these searches reveals a little, so each takes a part of your allowance."],
  },
  joint: {
    title: "Class lookup", button: "Look up the class",
    text: "The server gets a blurred example of every kind and cannot tell which one is yours. You get items of your kind.",
    price: () => "the right kind, not the closest",
    found: (n, of) => `Found by class lookup among ${of}: those of its kind, in no exact order.`,
    described: "They are blurred, beside a blurred example of every other kind.",
    step: "Your computer blurs an example of every kind, the server answers for all, and your computer keeps the right ones.",
    seen: "A blurred example of every kind. The server answers for each of them.",
    know: ["It knows that you searched, when and how often, and a blurred example of every kind.",
           "It cannot be sure which of them is yours, and it cannot know which match you open.",
           "Each of these searches reveals a little, so each takes a part of your allowance."],
  },
};
const notAnswered = ["The server did not answer", "What you chose is still here and still private. Trying again sends the same data, so it tells the server nothing new.", true];
const problems = {
  UNAVAILABLE: notAnswered,
  DEADLINE_EXCEEDED: notAnswered,
  RESOURCE_EXHAUSTED: ["The server has too much to do", "Or a limit was reached, such as that of searches in a second: the details below say which. Try again in a minute.", true],
  FILE: ["This file cannot be opened", "Choose another one: a picture (JPEG, PNG or WebP), or a file of vectors. Nothing was sent."],
  ENDED: ["This page has ended", "The program that serves it was stopped. Start it again."],
  LARGE: ["This collection is too large for this page", "What it holds of all items does not fit into the memory that the page may take. Start it again with the folder of the pictures (--pictures) or more memory (--max-memory)."],
  PREPARING: ["This collection is not ready yet", "The server still prepares it for searches. Try again in a minute.", true],
  VECTORS: ["This collection takes no pictures", "Choose a file of vectors (.npy, .fvecs or .csv), or another collection. Nothing was sent."],
  FORGOTTEN: ["Choose it again", "This page no longer keeps what you chose: another tab has chosen something since, or the searches were forgotten."],
  SPENT: ["Your privacy allowance is used up", "Nothing was sent. Encrypted searches take nothing of it, where a collection offers them."],
};
// Why a collection cannot be searched here.
const obstacles = {
  empty: "Nothing is in it yet.",
  unready: "Its operator still has to prepare it.",
  model: "Its pictures are described by a model that this page was started without: start it again with --model.",
};
const other = ["That did not work", "The details below say why."];

let collection = null, budget = null;  // as opened
let query = null;      // {target, name, src, answers}; no target yet while it is read
let entry = null;      // the answer on the page
let matches = [], open = 0;  // of it
let past = [];         // oldest first
let state = "broken";
let waiting = null;    // aborts the wait of a search

const kilobytes = (count) => count < 1000 ? `${count}\u00a0bytes`
  : `${Number((count / 1000).toPrecision(count < 9950 ? 2 : 3)).toLocaleString("en")}\u00a0KB`;
const noun = () => collection?.takes_pictures ? "pictures" : "items";
const readable = (text) => (text = String(text).replaceAll("-", " ").replaceAll("_", " "), text[0].toUpperCase() + text.slice(1));
const sourceOf = (one) => one.picture ? `target?target=${one.target}` : "";
const main = () => collection.default_scheme in collection.ways ? collection.default_scheme : Object.keys(collection.ways)[0];

// A picture on this computer: of the folder, or of the payload, which came with those of all items.
function pictureOf(match) {
  if (match.picture) return `picture?id=${encodeURIComponent(match.id)}`;
  return Object.values(match.payload ?? {}).find((value) => /^data:image\/(jpeg|png|webp);base64,/.test(value)) ?? "";
}
const nameOf = (match) => match.payload?.title ?? match.payload?.name ?? readable(match.class ?? match.id);
const tile = (src, alt, name) => src ? element("img", {src, alt}) : element("span", {class: "tile"}, name);

// 0 to 1, where the answer tells it.
function similarity(match) {
  if (collection.metric !== "cosine" || entry.answer.scheme === "joint") return null;
  return Math.max(0, match.similarity ?? 1 - match.squared_distance / 2);
}

function bar(match) {
  const share = similarity(match);
  return share === null ? "" : element("progress", {max: 1, value: share, "aria-hidden": "true"});
}

function line(match) {
  const share = similarity(match);
  return element("span", {class: "line"}, element("span", {class: "name"}, nameOf(match)), share === null ? ""
    : element("span", {class: "percent"}, `${Math.round(100 * share)}%`, element("span", {class: "unseen"}, " similar")));
}

function go(next) {
  const before = state;
  state = next;
  render();
  document.querySelector("main").hidden = false;
  if (next === "searching" || next === "results") scrollTo(0, 0);
  if (next === before && next === "chosen") return;  // the row was changed: its field keeps the focus
  document.querySelector("main h2:not([hidden] *)")?.focus({preventScroll: true});
}

function render() {
  for (const part of document.querySelectorAll("[data-in]")) part.hidden = !part.dataset.in.split(" ").includes(state);
  at("ask").className = `ask ${["results", "error"].includes(state) ? "compact" : ""} ${state}`;
  for (const image of document.querySelectorAll(".mine")) {
    image.hidden = !query?.src;
    if (query?.src && image.getAttribute("src") !== query.src) image.src = query.src;
  }
  for (const part of document.querySelectorAll(".mine-name")) part.textContent = query?.name ?? "";
  at("unsent").hidden = Boolean(query?.asked);
  at("collection").disabled = state === "searching";
  at("past").hidden = past.length === 0 || state === "searching";
  at("history").replaceChildren(...past.toReversed().map((one) => {
    const button = element("button", {class: "thumb"}, tile(sourceOf(one), `Show again: ${one.name}`, one.name));
    button.addEventListener("click", () => show(one));
    return element("li", {}, button);
  }));
  const found = state === "results";
  at("how").hidden = collection === null;
  at("how-title").textContent = found ? "How was this hidden?" : "How is this hidden?";
  at("travels").hidden = at("once").hidden = !found;
  at("other").hidden = true;
  if (collection === null) return;
  const way = schemes[found ? entry.answer.scheme : main()];
  at("know").replaceChildren(...way.know.map((text) => element("p", {}, text)));
  at("step").textContent = schemes[waiting?.scheme ?? main()].step;
  at("search").disabled = !query?.target || isSpent(main());
  at("price").textContent = priceOf(main());
  renderWays(["chosen", "results"].includes(state));
}

function renderWays(wanted) {
  const names = Object.keys(collection.ways).filter((name) => name !== main());
  at("other").hidden = !wanted || names.length === 0;
  if (at("other").hidden || budget === null) return;
  at("ways").replaceChildren(...names.map((name) => {
    const {title, text, button} = schemes[name];
    const made = element("button", {"data-way": name}, button, element("span", {}, priceOf(name)));
    made.disabled = isSpent(name);
    made.addEventListener("click", () => search(name));
    return element("div", {class: "way"}, element("h3", {}, title), element("p", {class: "soft"}, text), made);
  }));
  const {granted, left} = budget;
  const share = granted === null ? 0
    : Math.max(0, Math.min(left.epsilon / granted.epsilon, granted.delta > 0 ? left.delta / granted.delta : 1));
  at("left").textContent = granted === null ? "No privacy allowance is set for this collection. The page for operators says how to set one."
    : `${Math.round(100 * share)}% of your privacy allowance for this collection is left.`;
  at("gauge").value = share;
}

const isSpent = (name) => name !== "encrypted" && budget?.uses_left[name] === 0;

// Before a search: what it takes, finds and sends.
function priceOf(name) {
  const way = collection.ways[name];
  if (name === "encrypted") {
    const keys = past.some((one) => one.answer.scheme === name) ? 0 : way.keys;
    return `Finds the closest ${noun()}, costs nothing, sends about ${kilobytes(way.bytes + keys)} of encrypted data, and fetches the list of all ${noun()} when it is new.`;
  }
  const {granted} = budget ?? {};
  const share = granted ? Math.max(way.epsilon / granted.epsilon, way.delta ? way.delta / granted.delta : 0) : 0;
  const cost = !granted ? "There is no privacy allowance" : isSpent(name) ? "Not enough of the allowance is left"
    : `Takes ${Math.ceil(100 * share - 1e-9)}% of the allowance`;
  return `${cost} · ${schemes[name].price(way)} · ${kilobytes(way.bytes)}`;
}

// Draws every byte, row by row.
async function drawSent({target}) {
  const bytes = new Uint8Array(await (await fetch(`sent?target=${target}`)).arrayBuffer());
  const width = Math.ceil(Math.sqrt(3 * bytes.length)), height = Math.ceil(bytes.length / width);
  const image = new ImageData(width, height);
  bytes.forEach((value, i) => image.data.set([value, value, value, 255], 4 * i));
  Object.assign(at("noise"), {width, height});
  at("noise").getContext("2d").putImageData(image, 0, 0);
  const tail = bytes.subarray(Math.floor(bytes.length / 2)).subarray(0, 30);
  at("bytes").textContent = `… ${[...tail].map((value) => value.toString(16).padStart(2, "0")).join(" ")} …`;
}

function show(shown) {
  entry = shown;
  query = {target: entry.target, name: entry.name, src: sourceOf(entry), answers: entry.answers};
  const {answer} = entry, way = schemes[answer.scheme];
  const itself = entry.follows || collection.samples.includes(entry.name);
  matches = answer.matches.filter((match) => !itself || match.id !== entry.name).slice(0, 8);
  at("summary").textContent = way.found(matches.length, collection.items.toLocaleString("en"), collection.ways[answer.scheme])
    + (entry.follows ? " Two related searches were made: the one before, and this one from its match." : "");
  at("grid").replaceChildren(...matches.map((match, i) => {
    const button = element("button", {class: "match"},
                           element("span", {class: "frame"}, tile(pictureOf(match), "", nameOf(match))), bar(match), line(match));
    button.addEventListener("click", () => enlarge(i));
    return element("li", {}, button);
  }));
  at("described").textContent = `${counted(entry.features, "number")} describe your choice. ${way.described}`;
  at("up").textContent = kilobytes(entry.sent);
  at("down").textContent = kilobytes(answer.bytes.down);
  at("seen").textContent = way.seen;
  at("four").replaceChildren(...matches.slice(0, 4).map((match) => tile(pictureOf(match), "", nameOf(match))));
  const {table, payloads} = answer.bytes;
  const whole = [table && `the list of all ${noun()} (${kilobytes(table)})`, payloads && `the details of all (${kilobytes(payloads)})`];
  at("once").textContent = [
    answer.bytes.keys ? `A session's first search also sends ${kilobytes(answer.bytes.keys)} of public keys, which are drawn with the rest.` : "",
    table || payloads ? `Fetched as a whole, never for a single match: ${whole.filter(Boolean).join(", ")}.` : "",
    "Opening a match sends nothing.", ...answer.warnings].join(" ");
  at("noise").width = 0;
  drawSent(entry).catch(() => { at("bytes").textContent = ""; });
  go("results");
}

function enlarge(i) {
  open = (i + matches.length) % matches.length;
  const match = matches[open], src = pictureOf(match);
  at("detail-title").textContent = `Match ${open + 1} of ${matches.length}`;
  at("large").replaceChildren(tile(src, nameOf(match), nameOf(match)), bar(match),
                              element("figcaption", {}, line(match), element("span", {class: "small soft"}, match.id === nameOf(match) ? "" : match.id)));
  at("from").hidden = !src || !collection.takes_pictures;
  at("from").disabled = isSpent(main());
  at("from-price").textContent = at("from").hidden ? "Nothing on this computer describes it, so no search can start from it."
    : main() === "encrypted" ? "Sends one more encrypted search. The server sees two searches, not that they are related."
      : `${priceOf(main())}. Two related searches reveal more than one.`;
  if (!at("detail").open) at("detail").showModal();
}

function fail(error) {
  if (error.code === "STOPPED") return;
  const sizes = /has the wrong dimension: expected (\d+), got (\d+)$/.exec(error.message);
  const [title, text, canRetry] = sizes ? ["These vectors do not fit this collection",
    `They have ${sizes[2]} numbers each, but its ${noun()} have ${sizes[1]}. Choose another file. Nothing was sent.`]
    : problems[error.code] ?? other;
  const box = at("problem");
  box.querySelector("h2").textContent = title;
  box.querySelector("p").textContent = title === notAnswered[0] && query === null ? "It may be starting. Trying again tells it nothing about you." : text;
  box.querySelector("details").open = [other[0], problems.RESOURCE_EXHAUSTED[0], problems.FILE[0]].includes(title);
  box.querySelector(".bytes").textContent = `${error.code ?? "PAGE"}: ${error.message}`;
  at("retry").hidden = !canRetry;
  go(collection !== null && query !== null ? "error" : "broken");
}

async function start() {
  collection = budget = query = null;
  past = [];
  const answer = await call("api/collections");
  listCollections(answer);
  const can = answer.collections.filter((one) => !one.obstacle).sort((a, b) => b.takes_pictures - a.takes_pictures);
  const cannot = answer.collections.filter((one) => one.obstacle);
  const wanted = cannot.find((one) => one.name === (named() || answer.first));
  const listed = listCollections({...answer, collections: can});
  at("collection").hidden = can.length < (wanted ? 1 : 2);
  at("size").textContent = listed && can.length === 1 ? listed.name : "";
  at("cannot").textContent = cannot.map((one) => `“${one.name}” cannot be searched here. ${obstacles[one.obstacle]}`).join(" ");
  if (wanted || !listed) {
    at("collection").prepend(element("option", {disabled: "", selected: ""}, "Open another"));
    at("size").textContent = "";
    at("nothing").textContent = wanted ? `“${wanted.name}” cannot be searched here` : "There is nothing to search here yet";
    at("why").textContent = wanted ? obstacles[wanted.obstacle] : at("cannot").textContent || "The server has no collection yet.";
    return go("none");
  }
  at("operators").href = `operators.html#${encodeURIComponent(listed.name)}`;
  const opened = await openCollection(listed.name);
  if (Object.keys(opened.ways).length === 0) throw Object.assign(new Error(opened.no_cells), {code: "PREPARING"});
  collection = opened;
  [budget, past] = await Promise.all([call("api/budget"), call("api/history")]);
  at("size").textContent += `${at("size").textContent && " · "}${collection.items.toLocaleString("en")} ${noun()}`;
  for (const part of document.querySelectorAll(".noun")) part.textContent = noun();
  const vectors = ".npy,.fvecs,.csv";
  at("file").accept = collection.takes_pictures ? `.jpg,.jpeg,.png,.webp,${vectors}` : vectors;
  for (const part of document.querySelectorAll(".own")) part.textContent = collection.takes_pictures ? "a picture" : "a file of vectors";
  const isEncrypted = main() === "encrypted";
  at("promise").textContent = isEncrypted
    ? `The server finds the closest ${noun()} of its collection without ever learning what you are looking for.`
    : `The server finds similar ${noun()} of its collection and cannot be sure what you are looking for.`;
  at("stays").textContent = isEncrypted
    ? `Your ${collection.takes_pictures ? "picture" : "file"} never leaves this computer. The key that opens the answer stays here, too.`
    : "Your choice never leaves this computer: only a blurred or partly random form of it does.";
  at("samples").classList.toggle("none", collection.samples.length === 0);
  at("samples").querySelector("ul").replaceChildren(...collection.samples.map((id) => {
    const button = element("button", {class: "thumb"}, element("img", {src: `picture?id=${encodeURIComponent(id)}`, alt: `Sample: ${readable(id)}`}));
    button.addEventListener("click", () => pickLocal(`picture?id=${encodeURIComponent(id)}`, id));
    return element("li", {}, button);
  }));
  if (past.length) show(past.at(-1));
  else go("empty");
}

const local = async (src) => src.startsWith("data:")
  ? new Blob([Uint8Array.from(atob(src.slice(src.indexOf(",") + 1)), (letter) => letter.charCodeAt(0))])
  : (await fetch(src)).blob();

async function pickLocal(src, name, follows = false) {
  await pick(await local(src), name, src, follows);
}

// Reads a file on this computer: nothing is sent to the server.
async function pick(file, name, src, follows = false) {
  const vectors = /\.(npy|fvecs|csv)$/i.test(name);
  query = {name, src: vectors ? "" : src, answers: 0, file};
  at("row-line").hidden = !vectors;
  if (!follows) go("chosen");
  const mine = query;
  try {
    if (!vectors && !collection.takes_pictures) throw Object.assign(new Error(`${name} is no file of vectors`), {code: "VECTORS"});
    const made = await call(`api/target?name=${encodeURIComponent(name)}${vectors ? `&row=${at("row").value}` : ""}`
      + (follows ? "&follows=1" : ""), {method: "POST", body: file});
    if (query !== mine) return;
    mine.target = made.target;
    if (!follows || state === "chosen") render();
  } catch (error) {
    if (error.code === "INVALID_ARGUMENT") error.code = "FILE";
    if (query === mine) fail(error);
  }
}

async function search(scheme) {
  waiting = Object.assign(new AbortController(), {scheme});
  query.asked = true;
  const mine = waiting;
  go("searching");
  try {
    const body = JSON.stringify({target: query.target, scheme, answers: query.answers});
    const answer = await call("api/ask", {method: "POST", body, signal: mine.signal});
    budget = await call("api/budget");
    past = [...past.filter((one) => one.target !== answer.target), answer].slice(-12);
    if (waiting === mine) show(answer);
  } catch (error) {
    if (waiting !== mine) return;
    budget = await call("api/budget").catch(() => budget);  // a search without an answer may have taken its part
    fail(error);
  } finally {
    if (waiting === mine && state !== "error") waiting = null;
  }
}

const act = {
  again: () => query ? search(waiting?.scheme ?? main()) : start(),
  another() { query = waiting = null; at("file").value = ""; go("empty"); },
  stop() { waiting.abort(); waiting = null; go("chosen"); },
  previous: () => enlarge(open - 1),
  next: () => enlarge(open + 1),
  close: () => at("detail").close(),
  async from() {
    const match = matches[open];
    at("detail").close();
    waiting = Object.assign(new AbortController(), {scheme: main()});
    const mine = waiting;
    go("searching");
    await pickLocal(pictureOf(match), match.id, true);
    if (waiting === mine && query.target) await search(main());
  },
  async forget() { await call("api/forget", {method: "POST", body: ""}); past = []; act.another(); },
};

function choose(files) {
  if (files.length === 0 || waiting && state === "searching" || collection === null) return;
  pick(files[0], files[0].name, URL.createObjectURL(files[0]));
}

document.addEventListener("click", (event) => {
  const {"do": name} = event.target.closest("[data-do]")?.dataset ?? {};
  if (name) Promise.resolve(act[name]()).catch(fail);
});
at("search").addEventListener("click", () => search(main()));
at("file").addEventListener("click", () => { at("file").value = ""; });  // the same file again
at("file").addEventListener("change", () => choose(at("file").files));
at("row").addEventListener("change", () => pick(query.file, query.name, ""));
at("detail").addEventListener("close", () => state === "results" && at("grid").children[open]?.firstChild.focus());
at("detail").addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") enlarge(open - 1);
  if (event.key === "ArrowRight") enlarge(open + 1);
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") choose(event.dataTransfer.files);
  });
}
at("collection").addEventListener("change", () => {
  location.hash = encodeURIComponent(at("collection").value);
  start().catch(fail);
});
at("ghosts").append(...Array.from({length: 8}, () => element("div", {class: "ghost"})));
start().catch(fail);
