import type { ASTNode } from '@marcbachmann/cel-js';
import { ByteCache, compileLinearPattern } from '@writ/kernel';
import { childrenOf } from './child-nodes.ts';
import { spend } from './pass-limit.ts';

/** Number of instructions of a pattern that are executed in the time of a pass. */
const INSTRUCTIONS_PER_PASS = 50;
/** Compiling an instruction of a pattern takes as long as executing it for this number of characters. */
const COMPILATION = 10;
/** Estimated memory of an instruction of a pattern, bytes. */
const BYTES_PER_INSTRUCTION = 100;

/** The name under which `matches` is evaluated: see {@link useLinearPatterns}. */
export const LINEAR_MATCHES = 'matches_in_linear_time';

/**
 * Makes every call of `matches` use the engine of {@link compileLinearPattern}, as CEL requires (RE2): the built-in
 * function backtracks, so that an argument could block the review permanently.
 */
export function useLinearPatterns(node: ASTNode): void {
  if (node.op === 'rcall' && node.args[0] === 'matches') {
    Reflect.set(node.args, 0, LINEAR_MATCHES);
  }
  for (const child of childrenOf(node.args)) useLinearPatterns(child);
}

const patterns = new ByteCache<ReturnType<typeof compileLinearPattern>>({
  name: 'policy_patterns',
  maxBytes: 8_000_000,
});

/**
 * Whether a part of the text matches the pattern.
 * @throws an error for a malformed pattern, and a RangeError for too much work
 */
export function matchesPattern(text: string, source: string): boolean {
  // A malformed pattern is not cached.
  spend((source.length * COMPILATION) / INSTRUCTIONS_PER_PASS);
  const pattern = patterns.get(source) ?? compiled(source);
  // Whether the pattern is in the cache must not change the decision.
  spend((pattern.programSize() * (text.length + COMPILATION)) / INSTRUCTIONS_PER_PASS);
  return pattern.test(text);
}

function compiled(source: string) {
  const pattern = compileLinearPattern(source);
  patterns.set(source, pattern, BYTES_PER_INSTRUCTION * pattern.programSize());
  return pattern;
}
