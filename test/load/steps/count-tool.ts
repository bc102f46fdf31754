import type { JsonObject, Tools } from '@writ/kernel';

/** Creates tools that return their argument, so that a step measures only the platform. */
export async function createTools(): Promise<Tools> {
  const count = async ({ n }: JsonObject) => ({ n: Number(n) });
  return { count, ask: count };
}
