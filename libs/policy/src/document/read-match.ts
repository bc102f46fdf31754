import type { PriorityName } from '@writ/kernel';
import { isSeq } from 'yaml';
import { isExact } from '../glob.ts';
import { ACTION_KINDS, MATCH_KEYS, type Match } from '../review/match.ts';
import type { ToolSchemas } from '../types.ts';
import type { DocumentReader, Spot } from './document-reader.ts';
import { PATTERN } from './names.ts';

/** The names of priorities, lowest first (SUP-3). */
export const PRIORITY_NAMES: readonly PriorityName[] = [
  'BACKGROUND',
  'LOW',
  'NORMAL',
  'HIGH',
  'CRITICAL',
];

/** Reads `match`. The value of each key is a name or a list of names. */
export function readMatch(
  source: DocumentReader,
  spot: Spot | undefined,
  schemas: ToolSchemas,
): Match {
  const members = spot && source.map(spot, { keys: MATCH_KEYS });
  const match: Record<string, readonly string[]> = {};
  const kinds = members?.get('kind');
  if (kinds !== undefined) match.kind = readEntries(source, 'kind', kinds, schemas);
  // Only the client knows the names of the tools that it executes itself.
  const known = match.kind?.includes('client_tool') ? {} : schemas;
  for (const [key, member] of members ?? []) {
    if (key === 'kind') continue;
    match[key] = readEntries(source, key, member, known);
  }
  for (const [key, kinds] of [
    ['tool', ['tool', 'client_tool']],
    ['target', ['delegation']],
  ] as const) {
    const member = members?.get(key);
    if (member === undefined || (match.kind ?? kinds).some((kind) => isOneOf(kinds, kind)))
      continue;
    const having = kinds.join(' and ');
    source.report(
      member,
      `${member.path} never matches: only actions of kind ${having} have a ${key}.`,
    );
  }
  const target = members?.get('target');
  if (target !== undefined && match.tool !== undefined) {
    source.report(target, `${target.path} never matches an action that has a tool.`);
  }
  return match;
}

/** Reads one entry or a list of entries. */
function readEntries(
  source: DocumentReader,
  key: string,
  member: Spot,
  schemas: ToolSchemas,
): readonly string[] {
  const spots = isSeq(member.node) ? (source.list(member) ?? []) : [member];
  if (spots.length === 0) source.report(member, `${member.path} must not be empty.`);
  return spots.flatMap((entry) => readEntry(source, key, entry, schemas) ?? []);
}

function isOneOf(kinds: readonly string[], kind: string): boolean {
  return kinds.includes(kind);
}

/** Reads a tool name or pattern; a name that no gateway provides causes a warning. */
export function readTool(
  source: DocumentReader,
  spot: Spot,
  schemas: ToolSchemas,
): string | undefined {
  const tool = source.text(spot, PATTERN);
  const known = Object.keys(schemas);
  if (tool !== undefined && isExact(tool) && known.length > 0 && !known.includes(tool)) {
    source.warn(spot, `${spot.path}: no tool is named ${tool}.`);
  }
  return tool;
}

function readEntry(
  source: DocumentReader,
  key: string,
  spot: Spot,
  schemas: ToolSchemas,
): string | undefined {
  if (key === 'kind') return source.word(spot, ACTION_KINDS);
  if (key === 'priority') return source.word(spot, PRIORITY_NAMES);
  if (key === 'tool') return readTool(source, spot, schemas);
  return source.text(spot, PATTERN);
}
