import { isWritError } from '@writ/kernel';
import { formatProblem, PolicyError } from '@writ/policy';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';

/**
 * Runs `work` and returns its exit code. For an invalid policy or table, prints the problems and returns 1; for any
 * other WritError, prints the message and returns 2.
 */
export async function reportProblems(
  io: CliIo,
  options: FormatOptions,
  work: () => Promise<Exit>,
): Promise<Exit> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PolicyError) {
      const { problems } = error;
      const print = options.output === 'text' ? io.warn : io.print;
      showData({ print }, options, { problems }, () => problems.map(formatProblem));
      return EXIT.failure;
    }
    if (!isWritError(error)) throw error;
    io.warn(error.message);
    return EXIT.error;
  }
}
