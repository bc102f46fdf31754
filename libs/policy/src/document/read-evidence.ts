import { isSeq } from 'yaml';
import type { EvidenceRule, ToolSchemas } from '../types.ts';
import { type DocumentReader, oneOf, type Spot } from './document-reader.ts';
import { EVIDENCE, keysOf } from './policy-schema.ts';
import { readTool } from './read-match.ts';

/**
 * Reads `human.evidence`: what approvers see of the run (SV-5). By default, approvers see the goal, the history and all
 * facts. They see the results of a tool only if `observations` names the tool.
 * @param facts the names of all facts of the document
 */
export function readEvidence(
  source: DocumentReader,
  spot: Spot | undefined,
  facts: readonly string[],
  schemas: ToolSchemas,
): EvidenceRule {
  const members = spot && source.map(spot, { keys: keysOf(EVIDENCE) });
  return {
    goal: readSwitch(source, members?.get('goal')),
    history: readSwitch(source, members?.get('history')),
    facts: readFacts(source, members?.get('facts'), facts),
    observations: readTools(source, members?.get('observations'), schemas),
  };
}

function readSwitch(source: DocumentReader, spot: Spot | undefined): boolean {
  if (spot === undefined) return true;
  const value = source.literal(spot);
  if (value !== undefined && typeof value !== 'boolean') {
    source.report(spot, `${spot.path} must be true or false.`);
  }
  return value === true;
}

function readFacts(
  source: DocumentReader,
  spot: Spot | undefined,
  facts: readonly string[],
): readonly string[] {
  if (spot === undefined || !isSeq(spot.node)) return readSwitch(source, spot) ? facts : [];
  return (source.list(spot) ?? []).flatMap((entry) => {
    const name = source.text(entry);
    if (name === undefined) return [];
    if (facts.includes(name)) return name;
    source.report(entry, `${entry.path}: fact ${name} does not exist; available: ${oneOf(facts)}.`);
    return [];
  });
}

function readTools(
  source: DocumentReader,
  spot: Spot | undefined,
  schemas: ToolSchemas,
): readonly string[] {
  const spots = (spot && source.list(spot)) ?? [];
  return spots.flatMap((entry) => readTool(source, entry, schemas) ?? []);
}
