import type { Tools } from '@writ/kernel';

/** Creates a tool that does nothing, so that only the gateway is measured. */
export async function createTools(): Promise<Tools> {
  return { no_op: async () => ({}) };
}
