import type { Tools } from '@writ/kernel';
import { noOp } from './serve-peer.ts';

/** Creates the tool that every peer calls. */
export async function createTools(): Promise<Tools> {
  return { no_op: async () => ({ ...noOp() }) };
}
