import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * The first line of a child's standard output that matches; what it says later is read, and dropped.
 * @throws Error saying how it ended, when it did so without such a line
 */
export async function waitForLine(child: ChildProcess, wanted: RegExp): Promise<RegExpExecArray> {
  const { stdout } = child;
  if (stdout === null) throw new Error('The standard output of a child must be a pipe.');
  const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
  const others: string[] = [];
  createInterface({ input: stdout }).on('line', (line) => {
    const found = wanted.exec(line);
    if (found !== null) resolve(found);
    else others.push(line);
  });
  child.once('error', reject);
  // What it wrote last may be read after its exit.
  child.once('close', (code, signal) => {
    const instead = others.slice(-10).join('\n');
    reject(new Error(`It ended (${code ?? signal}) without a line like ${wanted}.\n${instead}`));
  });
  return await promise;
}
