import { sha256Hex } from '@writ/kernel';
import { readExpression } from '../cel/expression.ts';
import { type Declarations, outcomeScope } from '../cel/scope.ts';
import { PolicyError } from '../errors.ts';
import type { Adjustment, Expression, OutcomeRule, Policy, Rule, ToolSchemas } from '../types.ts';
import { DocumentReader, type Spot } from './document-reader.ts';
import { ID } from './names.ts';
import { HUMAN, keysOf, OUTCOME, POLICY_SCHEMA } from './policy-schema.ts';
import { readEvidence } from './read-evidence.ts';
import { factTypes, readFact, readFactHeads } from './read-facts.ts';
import { readEditable, readFourEyes, readHumanCaps } from './read-human.ts';
import { readLimits } from './read-limits.ts';
import { readTool } from './read-match.ts';
import { readRules } from './read-rules.ts';

/** Options for loading a policy document. */
export interface LoadOptions {
  /** File name used in messages. */
  readonly file: string;
  /** JSON Schemas of tool arguments; arguments of tools without a schema are not type-checked. */
  readonly toolSchemas?: ToolSchemas | undefined;
}

/**
 * Loads a policy document and type-checks every expression against the arguments, facts and limits
 * it reads (SV-3). The policy version is the SHA-256 of `text`.
 * @throws PolicyError with file, line and column of every problem
 */
export function loadPolicy(text: string, options: LoadOptions): Policy {
  const schemas = options.toolSchemas ?? {};
  const source = new DocumentReader(text, options.file);
  const members = source.map(source.root, {
    keys: keysOf(POLICY_SCHEMA),
    required: ['policy', 'rules'],
  });
  const nameSpot = members?.get('policy');
  const aboutSpot = members?.get('about');
  const limits = readLimits(source, members?.get('limits'));
  const heads = readFactHeads(source, members?.get('facts'));
  const declared = { facts: factTypes(heads), limits: limits.types };
  const humanSpot = members?.get('human');
  const human = humanSpot && source.map(humanSpot, { keys: keysOf(HUMAN) });
  const rules = readRules(source, members?.get('rules'), declared, schemas);
  const policy: Policy = {
    name: (nameSpot && source.text(nameSpot, ID)) ?? '',
    file: options.file,
    version: sha256Hex(text),
    about: (aboutSpot && source.text(aboutSpot)) ?? '',
    limits: limits.values,
    facts: heads.map((head) => readFact(source, head, declared, schemas)),
    outcomes: readOutcomes(source, members?.get('outcomes'), declared, schemas),
    rules,
    readsEffects: rules.some(readsRun),
    humanCaps: readHumanCaps(source, human?.get('caps'), schemas),
    editable: readEditable(source, human?.get('editable'), schemas),
    evidence: readEvidence(
      source,
      human?.get('evidence'),
      heads.map(({ name }) => name),
      schemas,
    ),
    fourEyes: readFourEyes(source, human?.get('four_eyes'), schemas),
    warnings: source.warnings,
  };
  source.assertValid();
  return Object.freeze(policy);
}

function readsRun({ when, adjustments }: Rule): boolean {
  const expressions = [when, ...adjustments.flatMap(expressionsOf)];
  return expressions.some((expression) => expression?.variables.includes('run'));
}

function expressionsOf(adjustment: Adjustment): readonly (Expression | undefined)[] {
  if (adjustment.how === 'cel') return [adjustment.expression];
  return adjustment.how === 'clamp' ? [adjustment.least, adjustment.most] : [];
}

/** Result of a reload. */
export interface Reload {
  /**
   * The active policy: the new policy if it is valid, otherwise the last valid policy; undefined if there is neither.
   */
  readonly policy: Policy | undefined;
  /** The error of an invalid new document. */
  readonly refused: PolicyError | undefined;
}

/** Loads `text` to replace `current`, which remains active when `text` is invalid (SV-3). */
export function reloadPolicy(
  current: Policy | undefined,
  text: string,
  options: LoadOptions,
): Reload {
  try {
    return { policy: loadPolicy(text, options), refused: undefined };
  } catch (error) {
    if (error instanceof PolicyError) return { policy: current, refused: error };
    throw error;
  }
}

/** Reads `outcomes`: which results of a tool count as success (SV-8). */
function readOutcomes(
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
