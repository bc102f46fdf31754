import type { ASTNode } from '@marcbachmann/cel-js';
import { ByteCache, compileLinearPattern } from '@writ/kernel';

/** Maximum number of passes of all loops in one evaluation. This many passes take a few tenths of a second (BD-1). */
const MAX_PASSES = 1_000_000;

/** Maximum product of the number of characters of a text and the number of instructions of its pattern. */
const MAX_PATTERN_WORK = 50_000_000;
/** Estimated memory of an instruction of a pattern, bytes. */
const BYTES_PER_INSTRUCTION = 100;

/** Macros and operators that pass over a list or map. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);

/** The name under which `matches` is evaluated: see {@link useLinearPatterns}. */
export const LINEAR_MATCHES = 'matches_in_linear_time';

/** The loops of an expression. */
export interface Loops {
  /** For each loop, how deep it is nested; 1 is an outermost loop. */
  readonly depths: readonly number[];
  /**
   * Number of `+` operators. Each may concatenate lists, so that a loop passes over more items than the largest list of
   * the context has.
   */
  readonly joins: number;
}

/** Finds the loops of an expression. */
export function loopsOf(node: ASTNode, depth = 0): Loops {
  const children = isLoop(node)
    ? loopParts(node).map(({ part, isBody }) => loopsOf(part, isBody ? depth + 1 : depth))
    : childrenOf(node.args).map((child) => loopsOf(child, depth));
  const own = isLoop(node) ? [depth + 1] : [];
  return {
    depths: [...own, ...children.flatMap(({ depths }) => depths)],
    joins: children.reduce((sum, { joins }) => sum + joins, node.op === '+' ? 1 : 0),
  };
}

/**
 * Rejects an evaluation whose loops could take too many passes over the lists and maps of the context.
 * @throws RangeError
 */
export function assertAffordable(
  { depths, joins }: Loops,
  context: Readonly<Record<string, unknown>>,
): void {
  if (depths.length === 0) return;
  const largest = largestIn(context) * (joins + 1);
  const passes = depths.reduce((sum, depth) => sum + largest ** depth, 0);
  if (passes <= MAX_PASSES) return;
  throw new RangeError(
    `the loops of the expression could take ${passes} passes; the limit is ${MAX_PASSES}`,
  );
}

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
  const pattern = patterns.get(source) ?? compiled(source);
  if (pattern.programSize() * text.length <= MAX_PATTERN_WORK) return pattern.test(text);
  throw new RangeError('the text is too long for a pattern of this size');
}

function compiled(source: string) {
  const pattern = compileLinearPattern(source);
  patterns.set(source, pattern, BYTES_PER_INSTRUCTION * pattern.programSize());
  return pattern;
}

/**
 * Returns the parts of a loop. The list of a macro is not part of the body, because it is evaluated once, before the
 * loop.
 */
function loopParts(node: ASTNode): { part: ASTNode; isBody: boolean }[] {
  const [list, ...bodies] = childrenOf(node.args);
  const isMacro = node.op === 'rcall';
  return [
    ...(list === undefined ? [] : [{ part: list, isBody: false }]),
    ...bodies.map((part) => ({ part, isBody: isMacro })),
  ];
}

function isLoop(node: ASTNode): boolean {
  if (node.op === 'in') return true;
  return node.op === 'rcall' && LOOPS.has(node.args[0]);
}

function largestIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members: unknown[] = value instanceof Map ? [...value.values()] : Object.values(value);
  return members.reduce<number>(
    (most, member) => Math.max(most, largestIn(member)),
    members.length,
  );
}

/** Returns the AST nodes among the arguments of an AST node. */
export function childrenOf(args: unknown): readonly ASTNode[] {
  if (Array.isArray(args)) return args.flatMap((item: unknown) => childrenOf(item));
  return isNode(args) ? [args] : [];
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}
