import { isSeq } from 'yaml';
import { readTool } from './read-match.ts';
import type { Spot } from './spot.ts';
import type { ToolSchemas } from './types.ts';
import type { YamlSource } from './yaml-source.ts';

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
