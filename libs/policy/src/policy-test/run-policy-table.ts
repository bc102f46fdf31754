import { canonicalJson, type JsonObject, Priority } from '@writ/kernel';
import { applyPending, applyReceipt } from '../facts/count-calls.ts';
import type { Facts } from '../facts/fact-types.ts';
import { factValues, initialFacts } from '../facts/fact-values.ts';
import { requiresFourEyes } from '../human/four-eyes.ts';
import { checkHumanDecision } from '../human/human-caps.ts';
import type { ReviewInput } from '../review/context.ts';
import { type ReviewOutcome, reviewToFixpoint } from '../review/fixpoint.ts';
import { type Decision, review } from '../review/review.ts';
import type { FactValue, Policy, ProposedAction } from '../types.ts';
import type { Expectation, HumanRow, PolicyTable, TableRow } from './policy-table.ts';

/** Result of one table row. */
export interface TableResult {
  readonly name: string;
  /** Line of the row in the table's file. */
  readonly line: number;
  readonly passed: boolean;
  /** One sentence per difference. */
  readonly differences: readonly string[];
}

/** Tests a policy with a table of situations (SV-3) and returns the results in row order. */
export function runPolicyTable(policy: Policy, table: PolicyTable): readonly TableResult[] {
  return [
    ...table.rows.map((row) => result(row, runRow(policy, row))),
    ...table.human.map((row) => result(row, runHumanRow(policy, row))),
  ];
}

/**
 * Returns the facts of a run with these values and initial values for all others. Names that the
 * policy does not declare and values of another type are ignored.
 */
export function factsWith(policy: Policy, values: Readonly<Record<string, FactValue>>): Facts {
  const { base, calls } = initialFacts(policy);
  const known = Object.entries(values).filter(
    ([name, value]) => typeof base[name] === typeof value,
  );
  return { base: { ...base, ...Object.fromEntries(known) }, calls };
}

/** Reviews the situation of a row, independently of what the row expects (SV-10). */
export function reviewRow(policy: Policy, row: TableRow): ReviewOutcome {
  return reviewToFixpoint(policy, inputOf(row, factsWith(policy, row.facts as never)));
}

function runRow(policy: Policy, row: TableRow): readonly string[] {
  const facts = factsWith(policy, row.facts as Record<string, FactValue>);
  const ignored = Object.entries(row.facts).filter(([name, value]) => facts.base[name] !== value);
  const differences = ignored.map(
    ([name]) => `facts.${name} does not exist, or its value has another type.`,
  );
  const input = inputOf(row, facts);
  if (row.expect !== undefined) {
    const decision = review(policy, input);
    differences.push(...compare('', row.expect, decision, decision.revisedAction ?? row.action));
  }
  if (row.finally !== undefined) {
    const { decision, action } = reviewToFixpoint(policy, input);
    differences.push(...compare('finally ', row.finally, decision, action));
  }
  if (row.after !== undefined) {
    differences.push(...compareFacts(row.after, factsAfter(policy, input, row)));
  }
  return differences;
}

/** Returns the facts after the final decision and the receipt, if the row has one. */
function factsAfter(policy: Policy, input: ReviewInput, row: TableRow): JsonObject {
  const { verdict, action } = reviewToFixpoint(policy, input);
  const call = { callId: 'call', tool: action.name ?? '' };
  let { facts } = input;
  if (verdict === 'approve') facts = applyPending(policy, facts, call.callId, action);
  if (row.receipt !== undefined) facts = applyReceipt(policy, facts, { ...call, ...row.receipt });
  return { ...factValues(policy, facts) };
}

function compareFacts(expected: JsonObject, facts: JsonObject): readonly string[] {
  return Object.entries(expected)
    .filter(([name, wanted]) => facts[name] !== wanted)
    .map(([name, wanted]) => `afterwards facts.${name} is ${facts[name]}, expected ${wanted}.`);
}

function inputOf(row: TableRow, facts: Facts): ReviewInput {
  const parent = { name: 'parent', instance: 'parent' };
  return {
    action: row.action,
    facts,
    agent: { name: row.agent, instance: row.agent },
    tenant: row.tenant,
    supervision: {
      runId: 'run',
      sessionId: 'session',
      parentId: row.depth > 0 ? parent : undefined,
      depth: row.depth,
      priority: Priority[row.priority],
      retention: 'run',
    },
    budget: row.budget,
    effects: row.effects,
    toolRisk: row.toolRisk,
    approvalRequiredRisk: row.approvalRequiredRisk,
    skipEscalation: row.approvedByHuman,
  };
}

function compare(
  prefix: string,
  expected: Expectation,
  decision: Decision,
  { args = {} }: ProposedAction,
): readonly string[] {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['decision', expected.decision, decision.verdict],
    ['reason', expected.reason, decision.reason],
    ['rule', expected.rule, decision.ruleId],
    ['risk', expected.risk, decision.risk],
  ];
  const differences = pairs
    .filter(([, wanted, got]) => wanted !== undefined && wanted !== got)
    .map(([what, wanted, got]) => `${prefix}${what} is ${got}, expected ${wanted}.`);
  if (expected.args === undefined || same(expected.args, args)) return differences;
  const [got, wanted] = [canonicalJson(args), canonicalJson(expected.args)];
  return [...differences, `${prefix}args are ${got}, expected ${wanted}.`];
}

function runHumanRow(policy: Policy, row: HumanRow): readonly string[] {
  const got = judgeHuman(policy, row);
  const wanted =
    row.refused === undefined ? `allowed as ${row.basis}` : `refused as ${row.refused}`;
  return got === wanted ? [] : [`is ${got}, expected ${wanted}.`];
}

function judgeHuman(policy: Policy, { tool, args, approver: name, roles, startedRun }: HumanRow) {
  if (startedRun && requiresFourEyes(policy, tool)) return 'refused as four_eyes';
  const check = checkHumanDecision(policy, { tool, args, approver: { name, roles } });
  return check.allowed ? `allowed as ${check.basis}` : `refused as ${check.reason}`;
}

function result(row: TableRow | HumanRow, differences: readonly string[]): TableResult {
  return { name: row.name, line: row.line, passed: differences.length === 0, differences };
}

function same(left: JsonObject, right: JsonObject): boolean {
  return canonicalJson(left) === canonicalJson(right);
}
