import { InvalidRequestError } from '@writ/kernel';
import { ChainWalk } from './chain-walk.ts';
import type { BrokenExport, Expected, ReadHead, SoundExport } from './verdict.ts';

/**
 * Checks an export line by line, up to the first broken place (SV-8): every record follows the one
 * before and has the hash of its content, every checkpoint is signed, names the checkpoint before it
 * and the hash that the chain has there, and a signed head ends it.
 * What an earlier export held, this one must hold as well, if its head is given.
 * @throws InvalidRequestError EXPORTS_NOT_COMPARABLE when this one begins after the earlier one ended
 * @throws what `lines` and `readHead` throw, but for signatures that do not count
 */
export async function verifyExport(
  lines: AsyncIterable<string> | Iterable<string>,
  readHead: ReadHead,
  expected: Expected = {},
): Promise<SoundExport | BrokenExport> {
  const { after = 0, earlier } = expected;
  if (earlier !== undefined && after > earlier.count) {
    throw new InvalidRequestError(
      'EXPORTS_NOT_COMPARABLE',
      `The earlier export ends with record ${earlier.count}, so an export from record ${after + 1} on has nothing in common with it.`,
    );
  }
  const walk = new ChainWalk(readHead, expected);
  let line = 0;
  for await (const text of lines) {
    line += 1;
    const problem = await walk.take(text);
    if (problem !== undefined) return { holds: false, line, sentence: `Line ${line}: ${problem}` };
  }
  const problem = walk.problemAtEnd();
  if (problem !== undefined) return { holds: false, line: line + 1, sentence: problem };
  return walk.end() ?? { holds: false, line: line + 1, sentence: walk.cutOff() };
}
