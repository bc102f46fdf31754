import { readExpression } from '../cel/expression.ts';
import { type Declarations, outcomeScope } from '../cel/scope.ts';
import type { OutcomeRule, ToolSchemas } from '../types.ts';
import type { DocumentReader, Spot } from './document-reader.ts';
import { keysOf, OUTCOME } from './policy-schema.ts';
import { readTool } from './read-match.ts';

/** Reads `outcomes`: which results of a tool count as success (SV-8). */
export function readOutcomes(
  source: DocumentReader,
  spot: Spot | undefined,
  declared: Declarations,
  schemas: ToolSchemas,
): readonly OutcomeRule[] {
  const spots = (spot && source.list(spot)) ?? [];
  const scope = outcomeScope(declared);
  return spots.flatMap((entry) => {
    const keys = keysOf(OUTCOME);
    const members = source.map(entry, { keys, required: keys });
    const toolSpot = members?.get('tool');
    const tool = toolSpot && readTool(source, toolSpot, schemas);
    const okWhen = readExpression(source, members?.get('ok_when'), scope, ['bool']);
    return tool === undefined || okWhen === undefined ? [] : [{ tool, okWhen }];
  });
}
