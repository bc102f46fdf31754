import type { Tools } from '@writ/kernel';

/** A tool that gives back what it is given: what is left of a step is what the platform does. */
export async function createTools(): Promise<Tools> {
  return { count: async ({ n }) => ({ n: Number(n) }) };
}
