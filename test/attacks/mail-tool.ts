import type { Tools } from '@writ/kernel';

/** Creates a tool that accepts every mail. */
export async function createTools(): Promise<Tools> {
  return { mail: async () => ({ sent: true }) };
}
