// The parts that both pages share. Text from a server becomes text nodes only.

export const at = (id) => document.getElementById(id);
export const number = (value) => String(Number(value.toPrecision(3)));
export const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
export const named = () => decodeURIComponent(location.hash.slice(1));  // the collection that another page left

let digest = "";  // of the collection that this tab shows: another tab may have opened another one

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The answer, or an error with its code and the program's message.
export async function call(path, options = {}) {
  if (digest) path += `${path.includes("?") ? "&" : "?"}digest=${digest}`;
  const fail = (code, message) => { throw Object.assign(new Error(message), {code}); };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    fail(error.name === "AbortError" ? "STOPPED" : "ENDED", "the program `privatemail page` does not answer");
  }
  if (response.headers.get("Content-Type") !== "application/json") fail("REFUSED", (await response.text()).trim());
  const answer = await response.json();
  if (answer?.error) fail(answer.error.code, answer.error.message);
  return answer;
}

export async function openCollection(name) {
  digest = "";
  const collection = await call(`api/collection?name=${encodeURIComponent(name)}`);
  ({digest} = collection);
  return collection;
}

// Returns the one to open; undefined: there is none.
export function listCollections({collections, first}) {
  at("collection").replaceChildren(...collections.map((one) => element("option", {}, one.name)));
  const open = [named(), first].map((name) => collections.find((one) => one.name === name)).find(Boolean) ?? collections[0];
  if (open) at("collection").value = open.name;
  return open;
}
