import { isScalar, Scalar } from 'yaml';
import type { Spot } from './spot.ts';

/**
 * Returns the offset in the YAML document of one character of a scalar, so that a problem inside an
 * expression is reported at its position. When escapes or folding make that ambiguous, returns the
 * start of the scalar.
 */
export function characterAt(text: string, spot: Spot, character: number): number {
  const { node, offset } = spot;
  if (character === 0 || !isScalar(node) || typeof node.value !== 'string' || !node.range) {
    return offset;
  }
  const [start, end] = node.range;
  if (node.type === Scalar.BLOCK_LITERAL) return inBlock(text, start, node.value, character);
  const quotes = node.type === Scalar.PLAIN ? 0 : 1;
  const same = text.slice(start + quotes, end - quotes) === node.value;
  return same ? start + quotes + character : offset;
}

function inBlock(text: string, start: number, value: string, character: number): number {
  const before = value.slice(0, character).split('\n');
  const column = before.at(-1)?.length ?? 0;
  let lineStart = text.indexOf('\n', start) + 1;
  const indent = /^ */.exec(text.slice(lineStart))?.[0].length ?? 0;
  for (let line = 1; line < before.length; line += 1) {
    lineStart = text.indexOf('\n', lineStart) + 1;
  }
  return lineStart + indent + column;
}
