// Blocks of row tables in IndexedDB, by server, collection and digest. Without IndexedDB, as in Node, and
// whenever it fails, nothing is kept, and the table is fetched again by the next connection.
const UNUSED_MS = 30 * 24 * 3600 * 1000;  // a table's collection may be gone

const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

export class BlockStore {
  /** null: there is none. */
  static async open() {
    if (typeof indexedDB === "undefined") return null;
    try {
      const request = indexedDB.open("privatemail", 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("blocks");  // [table, payloads, digest] -> content
        request.result.createObjectStore("tables");  // table -> time of the last use
      };
      return new BlockStore(await settled(request));
    } catch {
      return null;
    }
  }

  constructor(database) { this.database = database; }

  async load(table) {
    const blocks = this.database.transaction("blocks").objectStore("blocks");
    const range = IDBKeyRange.bound([table], [table, []]);
    const [keys, contents] = await Promise.all([settled(blocks.getAllKeys(range)), settled(blocks.getAll(range))]);
    return keys.map(([, payloads], i) => ({payloads, content: contents[i]}));
  }

  /** Adds the blocks that are new, and removes the table's others and tables that are unused. */
  async save(table, kept) {
    const transaction = this.database.transaction(["blocks", "tables"], "readwrite");
    const blocks = transaction.objectStore("blocks"), tables = transaction.objectStore("tables");
    const stored = new Map();
    for (const key of await settled(blocks.getAllKeys(IDBKeyRange.bound([table], [table, []])))) {
      stored.set(`${key[1]} ${key[2]}`, key);
    }
    for (const {payloads, digest, content} of kept) {
      if (!stored.delete(`${payloads} ${digest}`)) blocks.put(content(), [table, payloads, digest]);
    }
    for (const key of stored.values()) blocks.delete(key);
    const now = Date.now();
    tables.put(now, table);
    const [names, used] = await Promise.all([settled(tables.getAllKeys()), settled(tables.getAll())]);
    names.forEach((name, i) => {
      if (now - used[i] < UNUSED_MS) return;
      tables.delete(name);
      blocks.delete(IDBKeyRange.bound([name], [name, []]));
    });
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
  }
}
