import type { JsonObject } from '@writ/kernel';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  Scalar,
  visit,
} from 'yaml';
import { PolicyError, type PolicyProblem } from '../errors.ts';

/** A position in a document: the path for messages, the node and its offset. */
export interface Spot {
  /** Such as `rules[2].decide`; empty for the document itself. */
  readonly path: string;
  /** Null where a key has no value. */
  readonly node: Node | null;
  readonly offset: number;
}

/** Permitted keys of a mapping; without `keys`, all keys are permitted. */
export interface Shape {
  readonly keys?: readonly string[];
  readonly required?: readonly string[];
}

/**
 * One YAML document with the positions of its values. The read methods return undefined for a value
 * of the wrong type and collect the problem, so that one load reports all problems.
 */
export class DocumentReader {
  readonly root: Spot;
  readonly warnings: PolicyProblem[] = [];
  readonly #file: string;
  readonly #text: string;
  readonly #document: Document;
  readonly #lines = new LineCounter();
  readonly #problems: PolicyProblem[] = [];
  #hasAlias = false;

  /** @throws PolicyError with the position of the first indentation with a tab */
  constructor(text: string, file: string) {
    this.#file = file;
    this.#text = text;
    const document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
    this.#document = document;
    this.root = { path: '', node: document.contents, offset: 0 };
    // After a tab, the parser reports an error for each following line, so only the tab is reported.
    const tab = document.errors.find(({ code }) => code === 'TAB_AS_INDENT');
    if (tab !== undefined) {
      throw new PolicyError([
        this.#problem(tab.pos[0], 'tabs are not allowed; indent with spaces.'),
      ]);
    }
    visit(document, {
      Alias: (_, alias) => {
        this.#hasAlias = true;
        this.#reportAt(alias.range?.[0] ?? 0, 'aliases are not supported; repeat the value.');
      },
    });
    for (const error of [...document.errors, ...document.warnings]) {
      this.#reportAt(error.pos[0], error.message);
    }
  }

  /** Records a problem at a spot, or at a character of its scalar. */
  report(spot: Spot, message: string, character = 0): void {
    this.#reportAt(characterAt(this.#text, spot, character), message);
  }

  /** Records a warning, which does not make the document invalid. */
  warn(spot: Spot, message: string): void {
    this.warnings.push(this.#problem(spot.offset, message));
  }

  /** Returns the line of a spot, counted from 1. */
  lineOf(spot: Spot): number {
    return this.#lines.linePos(spot.offset).line;
  }

  /** @throws PolicyError when a problem was found */
  assertValid(): void {
    const problems = this.#problems.toSorted(
      (left, right) => left.line - right.line || left.column - right.column,
    );
    const [first, ...rest] = problems;
    if (first !== undefined) throw new PolicyError([first, ...rest]);
  }

  /** Returns the members of a mapping by key. */
  map(spot: Spot, shape: Shape = {}): ReadonlyMap<string, Spot> | undefined {
    if (!isMap(spot.node)) return this.#wrong(spot, 'a mapping');
    const members = new Map<string, Spot>();
    for (const { key, value } of spot.node.items) {
      const keySpot = spotOf(key, spot.path, spot.offset);
      const name = isScalar(key) ? String(key.value) : '';
      const path = spot.path === '' ? name : `${spot.path}.${name}`;
      if (shape.keys !== undefined && !shape.keys.includes(name)) {
        this.report(keySpot, `unknown key ${path}; expected ${oneOf(shape.keys)}.`);
        continue;
      }
      members.set(name, spotOf(value, path, keySpot.offset));
    }
    for (const name of shape.required ?? []) {
      if (members.has(name)) continue;
      this.report(spot, `${spot.path || 'the document'} must have the key ${name}.`);
    }
    return members;
  }

  /** Returns the items of a list. */
  list(spot: Spot): readonly Spot[] | undefined {
    if (!isSeq(spot.node)) return this.#wrong(spot, 'a list');
    return spot.node.items.map((item, index) =>
      spotOf(item, `${spot.path}[${index}]`, spot.offset),
    );
  }

  /** Returns a string that is not blank and matches `pattern`, if given. */
  text(spot: Spot, pattern?: RegExp): string | undefined {
    const value = this.#scalar(spot);
    if (typeof value !== 'string' || value.trim() === '') return this.#wrong(spot, 'a string');
    if (pattern === undefined || pattern.test(value)) return value;
    return this.#wrong(spot, `a name that matches ${pattern.source}`);
  }

  /** Returns one of `words`. */
  word<T extends string>(spot: Spot, words: readonly T[]): T | undefined {
    const value = this.#scalar(spot);
    return words.find((word) => word === value) ?? this.#wrong(spot, `one of ${oneOf(words)}`);
  }

  /** Returns a finite number. */
  number(spot: Spot): number | undefined {
    const value = this.#scalar(spot);
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#wrong(spot, 'a number');
  }

  /** Returns an integer between two inclusive limits. */
  integer(spot: Spot, least: number, most: number): number | undefined {
    const value = this.#scalar(spot);
    if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) {
      return Number(value);
    }
    return this.#wrong(spot, `a whole number from ${least} to ${most}`);
  }

  /** Returns a mapping as a JSON object. */
  json(spot: Spot): JsonObject | undefined {
    if (!isMap(spot.node)) return this.#wrong(spot, 'a mapping');
    // An alias can be unresolved or recursive; it has been reported already.
    if (this.#hasAlias) return undefined;
    return JSON.parse(JSON.stringify(spot.node.toJS(this.#document)));
  }

  /** Returns a string, number or boolean. */
  literal(spot: Spot): string | number | boolean | undefined {
    const value = this.#scalar(spot);
    if (typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#wrong(spot, 'a string, a number, true or false');
  }

  #scalar(spot: Spot): unknown {
    return isScalar(spot.node) ? spot.node.value : undefined;
  }

  #wrong(spot: Spot, expected: string): undefined {
    this.report(spot, `${spot.path || 'the document'} must be ${expected}, not ${found(spot)}.`);
  }

  #reportAt(offset: number, message: string): void {
    this.#problems.push(this.#problem(offset, message));
  }

  #problem(offset: number, message: string): PolicyProblem {
    const { line, col } = this.#lines.linePos(offset);
    // LineCounter returns line 0 for an empty document.
    return { file: this.#file, line: Math.max(line, 1), column: Math.max(col, 1), message };
  }
}

/** Joins words as `a, b or c`; returns `none` if there are no words. */
export function oneOf(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? 'none';
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function spotOf(node: unknown, path: string, fallback: number): Spot {
  if (!isScalar(node) && !isMap(node) && !isSeq(node) && !isAlias(node)) {
    return { path, node: null, offset: fallback };
  }
  return { path, node, offset: node.range?.[0] ?? fallback };
}

function found(spot: Spot): string {
  if (isMap(spot.node)) return 'a mapping';
  if (isSeq(spot.node)) return 'a list';
  if (isAlias(spot.node)) return 'an alias';
  if (!isScalar(spot.node)) return 'left empty';
  const { value } = spot.node;
  if (value === null || value === '') return 'left empty';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 60));
  return String(value);
}

/**
 * Returns the offset in the YAML document of one character of a scalar, so that a problem inside an
 * expression is reported at its position. When escapes or folding make that ambiguous, returns the
 * start of the scalar.
 */
function characterAt(text: string, spot: Spot, character: number): number {
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
