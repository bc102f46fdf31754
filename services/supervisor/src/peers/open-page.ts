/** A requested page of the open tabs or pools of a peer. */
export interface OpenPage<K> {
  /** The last key of the previous page; undefined for the first page. */
  readonly after: K | undefined;
  readonly limit: number;
  /** Minimum age of the returned tabs or pools by the clock of the peer, ms. */
  readonly minAgeMs: number;
}
