import { type ArgumentTypes, argumentTypes } from '../cel/argument-types.ts';
import { readExpression } from '../cel/expression.ts';
import { type Declarations, ruleScope } from '../cel/scope.ts';
import type { Match } from '../review/match.ts';
import { RULE_VERDICTS, type Rule, type ToolSchemas } from '../types.ts';
import type { DocumentReader, Spot } from './document-reader.ts';
import { ID, REASON } from './names.ts';
import { keysOf, RULE } from './policy-schema.ts';
import { readAdjustments } from './read-adjustments.ts';
import { readArguments } from './read-human.ts';
import { readMatch } from './read-match.ts';

/** Reads the ordered rules (SV-3). */
export function readRules(
  source: DocumentReader,
  spot: Spot | undefined,
  declared: Declarations,
  schemas: ToolSchemas,
): readonly Rule[] {
  const spots = (spot && source.list(spot)) ?? [];
  const ids = new Set<string>();
  let catchAll: Rule | undefined;
  const rules = spots.flatMap((entry) => {
    if (catchAll)
      source.warn(
        entry,
        `${entry.path} is never reached: rule ${catchAll.id} matches every action.`,
      );
    const rule = readRule(source, entry, declared, schemas);
    if (rule === undefined) return [];
    if (ids.has(rule.id)) source.report(entry, `${entry.path}.id ${rule.id} is used twice.`);
    ids.add(rule.id);
    if (matchesAll(rule)) catchAll ??= rule;
    return [rule];
  });
  if (spot !== undefined && rules.length > 0 && !rules.some(mayMatchFinal)) {
    source.warn(
      spot,
      'no rule matches a final answer, so every answer is blocked; add a rule with match: { kind: final }.',
    );
  }
  return rules;
}

function mayMatchFinal({ match: { kind, tool, target } }: Rule): boolean {
  return tool === undefined && target === undefined && (kind?.includes('final') ?? true);
}

function readRule(
  source: DocumentReader,
  spot: Spot,
  declared: Declarations,
  schemas: ToolSchemas,
): Rule | undefined {
  const members = source.map(spot, { keys: keysOf(RULE), required: ['id', 'decide', 'reason'] });
  if (members === undefined) return undefined;
  const read = <T>(key: string, reader: (member: Spot) => T): T | undefined => {
    const member = members.get(key);
    return member && reader(member);
  };
  const id = read('id', (member) => source.text(member, ID));
  const decide = read('decide', (member) => source.word(member, RULE_VERDICTS));
  const reason = read('reason', (member) => source.text(member, REASON));
  const risk = read('risk', (member) => source.integer(member, 0, 100)) ?? 0;
  const match = readMatch(source, members.get('match'), schemas);
  const args = argumentsOf(match, schemas);
  const scope = ruleScope(declared, args);
  const when = readExpression(source, members.get('when'), scope, ['bool']);
  const set = members.get('set');
  if (decide !== 'revise' && set !== undefined) {
    source.report(set, `${set.path} is only for rules that decide revise.`);
    return undefined;
  }
  if (decide === 'revise' && (set === undefined || match.tool === undefined)) {
    source.report(spot, `${spot.path} decides revise, so it must have match.tool and set.`);
    return undefined;
  }
  const editableSpot = members.get('editable');
  if (editableSpot !== undefined && decide !== 'escalate' && decide !== 'approve') {
    source.report(editableSpot, `${editableSpot.path} is only for rules that escalate or approve.`);
  }
  const editable = editableSpot && readArguments(source, editableSpot, args);
  const adjustments = set === undefined ? [] : readAdjustments(source, set, scope, args);
  if (!id || !decide || !reason) return undefined;
  const line = source.lineOf(spot);
  return { id, line, match, when, decide, reason, risk, adjustments, editable };
}

/**
 * Returns the arguments that the expressions of a rule can read: none if the rule cannot match a call; undefined if
 * their types are unknown, as for a tool that the client executes itself.
 */
function argumentsOf(match: Match, schemas: ToolSchemas): ArgumentTypes | undefined {
  if (match.target !== undefined) return {};
  if (match.kind?.includes('client_tool')) return undefined;
  if (match.kind !== undefined && !match.kind.includes('tool')) return {};
  return argumentTypes(schemas, match.tool ?? ['*']);
}

/**
 * Whether a rule matches every action. An escalate rule does not count: after an approval by a
 * human the next rules apply (SV-5).
 */
function matchesAll(rule: Rule): boolean {
  const always = rule.when === undefined && Object.keys(rule.match).length === 0;
  return always && rule.decide !== 'escalate';
}
