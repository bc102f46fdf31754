import type { Node } from 'yaml';

/** A position in a document: the path for messages, the node and its offset. */
export interface Spot {
  /** Such as `rules[2].decide`; empty for the document itself. */
  readonly path: string;
  /** Null where a key has no value. */
  readonly node: Node | null;
  readonly offset: number;
}
