import { InvalidRequestError } from '@writ/kernel/portable';
import { ChainWalk } from './chain-walk.ts';
import type { Expected, ExportCrypto, InvalidExport, ValidExport } from './verification.ts';

/**
 * Verifies an export line by line, up to the first problem (SV-8): every record follows the previous one and has the
 * hash of its content, every checkpoint is signed and names the previous checkpoint and the hash of the chain, and a
 * signed head ends the export. If the head of an earlier export is given, this export must continue the earlier export.
 * @throws InvalidRequestError EXPORTS_NOT_COMPARABLE when this export starts after the end of the earlier export
 * @throws the errors of `lines` and `crypto`, except for invalid signatures
 */
export async function verifyLines(
  lines: AsyncIterable<string> | Iterable<string>,
  crypto: ExportCrypto,
  expected: Expected = {},
): Promise<ValidExport | InvalidExport> {
  const { after = 0, earlier } = expected;
  if (earlier !== undefined && after > earlier.count) {
    throw new InvalidRequestError(
      'EXPORTS_NOT_COMPARABLE',
      `The earlier export ends with record ${earlier.count}; it does not overlap an export from record ${after + 1}.`,
    );
  }
  const walk = new ChainWalk(crypto, expected);
  let line = 0;
  for await (const text of lines) {
    line += 1;
    const problem = await walk.next(text);
    if (problem !== undefined) return { holds: false, line, sentence: `Line ${line}: ${problem}` };
  }
  const problem = walk.problemAtEnd();
  if (problem !== undefined) return { holds: false, line: line + 1, sentence: problem };
  return walk.end() ?? { holds: false, line: line + 1, sentence: walk.missingHead() };
}
