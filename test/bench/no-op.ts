import type { Tools } from '@writ/kernel';

/** A tool that does nothing: what is left is what the gateway does. */
export async function createTools(): Promise<Tools> {
  return { no_op: async () => ({}) };
}
