import {at, call, counted, element, listCollections, number, openCollection} from "./common.js";

const isEncrypted = ({schemes}) => schemes.join() === "encrypted";  // needs neither build nor budget
const rows = (lines) => lines.map((cells) => element("tr", {}, ...cells.map((one) => element("td", {}, String(one)))));

async function act(action) {
  at("problem").hidden = true;
  try {
    await action();
  } catch (error) {
    at("problem").textContent = `${error.message} (${error.code})`;
    at("problem").hidden = false;
  }
}

async function list() {
  const answer = await call("api/collections");
  at("server").textContent = answer.server;
  at("collections").replaceChildren(...rows(answer.collections.map((one) => [
    one.name, one.items, one.with_encrypted ? one.items : one.embedded, isEncrypted(one) ? "" : one.changes_since_embedding,
    one.build_share === null ? "" : `${Math.round(100 * one.build_share)} % done`, one.classes,
    one.schemes.join(", "),
    one.cells.length ? `${one.cells.join(", ")}${one.cells_state ? `: ${one.cells_state}` : ""}` : "none"])));
  return answer;
}

async function open() {
  const name = at("collection").value;
  at("back").href = `./#${encodeURIComponent(name)}`;
  at("command").textContent = `privatemail budget set ${name} --epsilon E --delta D`;
  for (const id of ["no-cells", "budget", "health"]) at(id).textContent = "";
  at("history").replaceChildren();
  const collection = await openCollection(name);
  if (collection.cells.length && !collection.ways.cells) {
    at("no-cells").textContent = `Searches by cells are not offered: ${collection.no_cells}.`;
  }
  const budget = await call("api/budget");
  at("set").hidden = isEncrypted(collection);
  at("budget").textContent = isEncrypted(collection) ? "All searches of this collection are encrypted, and need no budget."
    : budget.granted === null ? `No budget is set, so ${collection.with_encrypted ? "only encrypted searches work" : "no search works"}.`
    : `Epsilon ${number(budget.spent.epsilon)} of ${number(budget.granted.epsilon)} is spent, in `
      + `${counted(budget.releases, "release")}; delta ${number(budget.spent.delta)} of ${number(budget.granted.delta)}. `
      + "Encrypted searches spend none.";
  at("history").replaceChildren(...rows(budget.history.toReversed().map((change) => [
    change.at.slice(0, 16).replace("T", " "), change.kind, number(change.epsilon), number(change.delta),
    change.kind === "charge" ? `${change.proven ? "proven" : "NOT proven"}: ${change.source}` : change.operator ?? ""])));
}

async function check() {
  await list();
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

at("collection").addEventListener("change", () => {
  location.hash = encodeURIComponent(at("collection").value);
  act(open);
});
at("check").addEventListener("click", () => act(check));
act(async () => {
  const answer = await list();
  if (listCollections(answer)) await open();
});
