import type { Tools } from '@writ/kernel';

/** Accepts every mail. */
export async function createTools(): Promise<Tools> {
  return { mail: async () => ({ sent: true }) };
}
