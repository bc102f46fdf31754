import type { Tools } from '@writ/kernel';

/** A tool that does nothing, so that only the gateway is measured. */
export async function createTools(): Promise<Tools> {
  return { no_op: async () => ({}) };
}
