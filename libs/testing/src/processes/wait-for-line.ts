import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * Resolves with the match in the first matching line of a child's standard output; later lines are ignored.
 * @throws Error with the exit code or signal and the last lines when the child exits without such a line
 */
export async function waitForLine(child: ChildProcess, wanted: RegExp): Promise<RegExpExecArray> {
  const { stdout } = child;
  if (stdout === null) throw new Error('The standard output of the child process must be a pipe.');
  const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
  const others: string[] = [];
  createInterface({ input: stdout }).on('line', (line) => {
    const found = wanted.exec(line);
    if (found !== null) resolve(found);
    else others.push(line);
  });
  child.once('error', reject);
  // The last output may arrive after the exit event.
  child.once('close', (code, signal) => {
    const instead = others.slice(-10).join('\n');
    reject(
      new Error(
        `The process exited (${code ?? signal}) without a line like ${wanted}.\n${instead}`,
      ),
    );
  });
  return await promise;
}
