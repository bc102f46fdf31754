/** A page of what a peer holds open. */
export interface OpenPage<K> {
  /** The last key of the previous page; undefined for the first page. */
  readonly after: K | undefined;
  readonly limit: number;
  /** Only what was opened at least this long ago, by the clock of the peer, ms. */
  readonly minAgeMs: number;
}
