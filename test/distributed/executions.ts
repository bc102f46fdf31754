import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { Tools } from '@writ/kernel';

/** Environment variable with the path of the file to which the tool of this module writes a line for each execution. */
export const EXECUTIONS_FILE = 'EXECUTIONS_FILE';

/** Returns the recorded executions, in order. */
export function executionsIn(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Creates a tool that counts its executions across processes. */
export async function createTools(): Promise<Tools> {
  return {
    wipe_disk: async ({ disk }) => {
      const file = process.env[EXECUTIONS_FILE] ?? '';
      appendFileSync(file, `${String(disk)}\n`, { flush: true });
      return { wiped: executionsIn(file).length };
    },
  };
}
