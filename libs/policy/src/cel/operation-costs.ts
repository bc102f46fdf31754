import type { ASTNode } from '@marcbachmann/cel-js';
import { spend } from './pass-limit.ts';

/** Number of characters that are read or written in the time of a pass. */
const CHARACTERS_PER_PASS = 100;
/** Number of characters that are counted in the time of a pass: `size` decodes each of them. */
const DECODED_PER_PASS = 10;
/** Number of comparisons of characters during a search in the time of a pass. */
const COMPARISONS_PER_PASS = 1_000;
/** Converting a time to a time zone takes as long as this number of passes. */
const PASSES_PER_TIME_ZONE = 1_000;
/** The parser of durations takes cubic time. */
const CUBIC_STEPS_PER_PASS = 2_000;

/** Counts the passes of an operation with these operands. */
export type Cost = (operands: readonly unknown[]) => void;

const OPERATORS: Readonly<Record<string, Cost>> = {
  in: ([value, list]) => {
    if (!Array.isArray(list)) return spendOnType(list);
    spend(list.length * (1 + membersOf(value).length));
    if (isObject(value)) spendOnAll(list);
    else for (const item of list) if (lengthOf(item) === lengthOf(value)) spendOnOperand(item);
  },
  '==': spendOnComparison,
  '!=': spendOnComparison,
  '<': spendOnOrder,
  '<=': spendOnOrder,
  '>': spendOnOrder,
  '>=': spendOnOrder,
  '+': (operands) => {
    for (const operand of operands) {
      spendOnOperand(operand);
      if (Array.isArray(operand)) spend(operand.length);
    }
  },
};

const FUNCTIONS: Readonly<Record<string, Cost>> = {
  contains: spendOnSearch,
  indexOf: spendOnSearch,
  lastIndexOf: spendOnSearch,
  split: (operands) => {
    spendOnSearch(operands);
    const [text, separator] = operands;
    if (isText(text) && isText(separator)) spend(countParts(text, separator));
  },
  join: ([list, separator]) => {
    spendOnAll(list);
    spend((membersOf(list).length * lengthOf(separator)) / CHARACTERS_PER_PASS);
  },
  size: ([value]) => {
    spendOnType(value);
    spend(lengthOf(value) / DECODED_PER_PASS);
  },
  // Every byte of the text can be a member of the parsed value.
  json: ([bytes]) => spend(lengthOf(bytes)),
  duration: ([text]) => spend(lengthOf(text) ** 3 / CUBIC_STEPS_PER_PASS),
  // These do not read the whole text.
  startsWith: ([, part]) => spendOnOperand(part),
  endsWith: ([, part]) => spendOnOperand(part),
  substring: () => undefined,
};

/** How a node of an expression counts its passes; undefined if it takes the same time for all operands. */
export function costOf(node: ASTNode): Cost | undefined {
  if (node.op !== 'call' && node.op !== 'rcall') return OPERATORS[node.op];
  const [name] = node.args;
  if (Object.hasOwn(FUNCTIONS, name)) return FUNCTIONS[name];
  return /^get[A-Z]/.test(name) ? spendOnTime : spendOnOperands;
}

/** Counts one pass for each member of the list or map of a loop. */
export function spendOnMembers([value]: readonly unknown[]): void {
  spend(membersOf(value).length);
}

function spendOnOperands(operands: readonly unknown[]): void {
  operands.forEach(spendOnOperand);
}

function spendOnOperand(value: unknown): void {
  if (isObject(value)) spendOnType(value);
  spend(lengthOf(value) / CHARACTERS_PER_PASS);
}

/** To determine the type of a list or map, cel-js reads its first member, and all keys of a map. */
function spendOnType(value: unknown): void {
  for (let part = value; isObject(part); ) {
    const members = membersOf(part);
    if (!Array.isArray(part)) spend(members.length);
    part = members[0];
  }
}

function spendOnTime([, zone]: readonly unknown[]): void {
  if (zone !== undefined) spend(PASSES_PER_TIME_ZONE);
}

/** Lists and maps are compared with all their members. */
function spendOnComparison([left, right]: readonly unknown[]): void {
  if (!isObject(left) && lengthOf(left) === lengthOf(right)) spendOnOperand(left);
  for (const value of [left, right]) {
    if (isObject(left) && isObject(right)) spendOnAll(value);
    else spendOnType(value);
  }
}

function spendOnOrder([left, right]: readonly unknown[]): void {
  spend(Math.min(lengthOf(left), lengthOf(right)) / CHARACTERS_PER_PASS);
}

/** In the worst case, a search compares the searched text at each position. */
function spendOnSearch([text, searched]: readonly unknown[]): void {
  spendOnOperand(text);
  spend((lengthOf(text) * lengthOf(searched)) / COMPARISONS_PER_PASS);
}

function spendOnAll(value: unknown): void {
  const members = membersOf(value);
  spend(members.length + lengthOf(value) / CHARACTERS_PER_PASS);
  members.forEach(spendOnAll);
}

/** Counts the parts before a text is split, because a list of all parts could exceed the memory. */
function countParts(text: string, separator: string): number {
  if (separator === '') return text.length;
  let parts = 1;
  for (let at = text.indexOf(separator); at >= 0; parts += 1) {
    at = text.indexOf(separator, at + separator.length);
  }
  return parts;
}

function membersOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value.values()];
  return isObject(value) ? Object.values(value) : [];
}

function lengthOf(value: unknown): number {
  return isText(value) || value instanceof Uint8Array ? value.length : 0;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Whether a value is a list or map. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}
