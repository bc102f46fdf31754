import { isSeq } from 'yaml';
import { type ArgumentTypes, argumentTypes } from '../cel/argument-types.ts';
import type { EditableArguments, HumanCap, ToolSchemas } from '../types.ts';
import { type DocumentReader, oneOf, type Spot } from './document-reader.ts';
import { ARGUMENT, PATTERN } from './names.ts';
import { EDITABLE, HUMAN_CAP, keysOf } from './policy-schema.ts';
import { readTool } from './read-match.ts';

/** Reads `human.caps`: the limits of approvals by humans (SV-5). */
export function readHumanCaps(
  source: DocumentReader,
  caps: Spot | undefined,
  schemas: ToolSchemas,
): readonly HumanCap[] {
  const spots = (caps && source.list(caps)) ?? [];
  return spots.flatMap((entry) => readCap(source, entry, schemas) ?? []);
}

function readCap(source: DocumentReader, spot: Spot, schemas: ToolSchemas): HumanCap | undefined {
  const members = source.map(spot, { keys: keysOf(HUMAN_CAP), required: ['tool', 'argument'] });
  if (members === undefined) return undefined;
  const pattern = (key: string) => {
    const member = members.get(key);
    return member && source.text(member, PATTERN);
  };
  const argumentSpot = members.get('argument');
  const argument = argumentSpot && source.text(argumentSpot, ARGUMENT);
  const toolSpot = members.get('tool');
  const tool = toolSpot && readTool(source, toolSpot, schemas);
  warnOfUnknown(source, argumentSpot, argument, argumentTypes(schemas, tool ? [tool] : []));
  const plain = members.get('max');
  const money = members.get('max_usd');
  const maxSpot = money ?? plain;
  if (maxSpot === undefined || (plain !== undefined && money !== undefined)) {
    source.report(spot, `${spot.path} must have either max or max_usd.`);
    return undefined;
  }
  const max = source.number(maxSpot);
  if (max !== undefined && max < 0) source.report(maxSpot, `${maxSpot.path} must not be negative.`);
  if (tool === undefined || argument === undefined || max === undefined) return undefined;
  return {
    tool,
    argument,
    max,
    unit: money === undefined ? 'none' : 'usd',
    approver: pattern('approver') ?? '*',
    role: pattern('role') ?? '*',
  };
}

/**
 * Warns about a cap on an argument that the tool does not have, because such a cap rejects every approval of the tool.
 */
function warnOfUnknown(
  source: DocumentReader,
  spot: Spot | undefined,
  name: string | undefined,
  args: ArgumentTypes | undefined,
): void {
  if (spot === undefined || name === undefined || args === undefined) return;
  if (Object.hasOwn(args, name)) return;
  const known = oneOf(Object.keys(args));
  source.warn(spot, `${spot.path}: argument ${name} does not exist; available: ${known}.`);
}

/** Reads `human.editable`: the arguments that an approver may change, by tool (SV-5). */
export function readEditable(
  source: DocumentReader,
  spot: Spot | undefined,
  schemas: ToolSchemas,
): readonly EditableArguments[] {
  const spots = (spot && source.list(spot)) ?? [];
  return spots.flatMap((entry) => {
    const members = source.map(entry, {
      keys: keysOf(EDITABLE),
      required: ['tool', 'arguments'],
    });
    const toolSpot = members?.get('tool');
    const tool = toolSpot && readTool(source, toolSpot, schemas);
    const listSpot = members?.get('arguments');
    if (tool === undefined || listSpot === undefined) return [];
    const names = readArguments(source, listSpot, argumentTypes(schemas, [tool]));
    return names === undefined ? [] : [{ tool, arguments: names }];
  });
}

/** Reads a list of argument names. `args` are the arguments that exist; undefined if they are unknown. */
export function readArguments(
  source: DocumentReader,
  spot: Spot,
  args: ArgumentTypes | undefined,
): readonly string[] | undefined {
  return source.list(spot)?.flatMap((entry) => {
    const name = source.text(entry, ARGUMENT);
    if (name !== undefined && args !== undefined && !Object.hasOwn(args, name)) {
      const known = oneOf(Object.keys(args));
      source.report(entry, `${entry.path}: argument ${name} does not exist; available: ${known}.`);
    }
    return name ?? [];
  });
}

/**
 * Reads `human.four_eyes`: a list of tool names and patterns, `true` for every action, or `false` for none. The user
 * who started a run is not permitted to approve the selected actions (SV-5).
 */
export function readFourEyes(
  source: DocumentReader,
  spot: Spot | undefined,
  schemas: ToolSchemas,
): readonly string[] | undefined {
  if (spot === undefined) return undefined;
  if (isSeq(spot.node)) {
    return (source.list(spot) ?? []).flatMap((tool) => readTool(source, tool, schemas) ?? []);
  }
  const value = source.literal(spot);
  if (value === true) return ['*'];
  if (value !== undefined && value !== false) {
    source.report(spot, `${spot.path} must be true, false or a list of tools.`);
  }
  return [];
}
