/** Private nearest-neighbour search (docs/javascript.md): the server learns nothing of a target. */

export interface ConnectOptions {
  /** The access key, with the scope search. Sent as a bearer token. */
  key?: string;
  /** Whether to keep row tables in IndexedDB; default true. They tell when this browser last searched. */
  cache?: boolean;
  /** Milliseconds of a call with its retries; default 30,000. */
  timeout?: number;
}

/** url: of the daemon's http_listen or of a proxy before it; https but for this machine. */
export function connect(url: string, options?: ConnectOptions): Connection;

/** Keys live in the connection's worker and end with it. Searches run one after another. */
export interface Connection {
  collection(name: string): Collection;
  close(): Promise<void>;
}

export interface SearchOptions {
  /** Matches, 1 to 10,000; default 8. */
  k?: number;
  /** Fetch the payloads of all items, never of some; default false. */
  payloads?: boolean;
  /** Only items with this label. The server does not see it. */
  label?: number;
}

export type Vector = ArrayLike<number>;

export interface Collection {
  readonly name: string;
  /** The nearest items, by the scheme `encrypted`. Searches leave on a schedule: do not send anything yourself that
   * depends on matches, such as a fetch of one picture. */
  search(target: Vector, options?: SearchOptions): Promise<SearchResult>;
  /** Searches for several targets in as few messages as possible. */
  searchAll(targets: readonly Vector[], options?: SearchOptions): Promise<SearchResult[]>;
  describe(): Promise<Description>;
}

/** What the server says of the collection. */
export interface Description {
  uuid: string;
  extractor: string;
  dimensions: number;
  metric: "cosine" | "dot" | "euclidean";
  delta: number;
  rows: number;
}

export interface Match {
  id: string;
  label: number | null;
  /** The cosine or, unless that is the metric, the inner product; rounded to 4 decimals of the cosine. */
  similarity: number;
  squaredDistance: number;
  /** The parsed JSON; null without one, or unless asked for. */
  payload: unknown;
}

export interface SearchResult {
  /** Nearest first. */
  matches: Match[];
  guarantee: {kind: string; bits: number; assumption: string; source: string};
  delta: number;
  /** Items that were compared, and their version. */
  items: number;
  itemsVersion: number;
  /** SHA-256 of the row table's digests in hex: the same for every searcher. Compare it to find a server that gives
   * each its own. */
  table: string;
  /** Of all targets of the call together. */
  bytes: {up: number; down: number};
  /** Milliseconds, of all targets of the call together. */
  times: {encryption: number; answer: number; ranking: number};
}

/** code: "INVALID_ARGUMENT", "DATA_LOSS", "UNAVAILABLE", ... */
export class PrivateMailError extends Error {
  readonly code: string;
  constructor(code: string, message: string);
}
