import type { Node } from 'yaml';

/** A place in a document: its path for messages, the node that stands there, and its offset. */
export interface Spot {
  /** Such as `rules[2].decide`; empty for the document itself. */
  readonly path: string;
  /** Null where a key has no value. */
  readonly node: Node | null;
  readonly offset: number;
}
