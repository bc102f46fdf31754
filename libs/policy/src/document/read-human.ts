import { isSeq } from 'yaml';
import type { HumanCap, ToolSchemas } from '../types.ts';
import { ARGUMENT, PATTERN } from './names.ts';
import { readTool } from './read-match.ts';
import type { Spot, YamlSource } from './yaml-source.ts';

const KEYS = ['tool', 'argument', 'max', 'max_usd', 'approver', 'role'];

/** Reads `human.caps`: the limits of approvals by humans (SV-5). */
export function readHumanCaps(
  source: YamlSource,
  caps: Spot | undefined,
  schemas: ToolSchemas,
): readonly HumanCap[] {
  const spots = (caps && source.list(caps)) ?? [];
  return spots.flatMap((entry) => readCap(source, entry, schemas) ?? []);
}

function readCap(source: YamlSource, spot: Spot, schemas: ToolSchemas): HumanCap | undefined {
  const members = source.map(spot, { keys: KEYS, required: ['tool', 'argument'] });
  if (members === undefined) return undefined;
  const pattern = (key: string) => {
    const member = members.get(key);
    return member && source.text(member, PATTERN);
  };
  const argumentSpot = members.get('argument');
  const argument = argumentSpot && source.text(argumentSpot, ARGUMENT);
  const toolSpot = members.get('tool');
  const tool = toolSpot && readTool(source, toolSpot, schemas);
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
 * Reads `human.four_eyes`: true, or a list of tool names and patterns. The user who started a run
 * is not permitted to approve these actions (SV-5).
 */
export function readFourEyes(
  source: YamlSource,
  spot: Spot | undefined,
  schemas: ToolSchemas,
): readonly string[] {
  if (spot === undefined) return [];
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
