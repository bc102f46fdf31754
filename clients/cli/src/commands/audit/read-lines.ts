import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { InvalidRequestError } from '@writ/kernel';

/** No line that a supervisor writes comes near it. */
const MAX_LINE = 8 * 1024 * 1024;
const LINE_FEED = 10;

/**
 * The lines of a file, which end with a line feed and nothing else; the last one may lack it. One
 * whose bytes are no text is empty.
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
        `${file} has a line of over ${MAX_LINE} bytes.`,
      );
    }
  }
  if (rest.length > 0) yield textOf(rest);
}

function textOf(line: Buffer): string {
  return isUtf8(line) ? line.toString() : '';
}
