import type { Tools } from '@writ/kernel';
import { noOp } from './serve-peer.ts';

/** The tool of the peers. */
export async function createTools(): Promise<Tools> {
  return { no_op: async () => ({ ...noOp() }) };
}
