import { isScalar, Scalar } from 'yaml';
import type { Spot } from './spot.ts';

/**
 * The offset in the YAML text of one character of the text that a scalar holds, so that a mistake
 * inside an expression is shown where it stands. Where escapes or folding make that unclear it is
 * the start of the scalar.
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
