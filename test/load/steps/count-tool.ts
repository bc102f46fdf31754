import type { Tools } from '@writ/kernel';

/** Returns its argument, so that a step measures only the platform. */
export async function createTools(): Promise<Tools> {
  return { count: async ({ n }) => ({ n: Number(n) }) };
}
