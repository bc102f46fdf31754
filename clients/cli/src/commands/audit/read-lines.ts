import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { InvalidRequestError } from '@writ/kernel';

/** Largest line, in bytes; the supervisor writes much shorter lines. */
const MAX_LINE = 8 * 1024 * 1024;
const LINE_FEED = 10;

/**
 * The lines of a file, separated by line feeds. A line that is not UTF-8 is returned as an empty line.
 * @throws InvalidRequestError LINE_TOO_LONG; what reading the file throws
 */
export async function* readLines(file: string): AsyncIterable<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED, start)) {
      yield textOf(rest.subarray(start, end));
      start = end + 1;
    }
    rest = rest.subarray(start);
    if (rest.length > MAX_LINE) {
      throw new InvalidRequestError(
        'LINE_TOO_LONG',
        `${file} has a line of more than ${MAX_LINE} bytes.`,
      );
    }
  }
  if (rest.length > 0) yield textOf(rest);
}

function textOf(line: Buffer): string {
  return isUtf8(line) ? line.toString() : '';
}
