import type { JsonObject, PriorityName } from '@writ/kernel';
import { isSeq } from 'yaml';
import type { Spot } from '../document/document-reader.ts';
import { DocumentReader } from '../document/document-reader.ts';
import { PRIORITY_NAMES } from '../document/read-match.ts';
import type { FactReceipt } from '../facts/fact-types.ts';
import { NO_EFFECTS, NO_USAGE } from '../review/context.ts';
import { ACTION_KINDS } from '../review/match.ts';
import {
  BUDGET_FIELDS,
  type BudgetView,
  EFFECT_FIELDS,
  type EffectsView,
  type ProposedAction,
  RULE_VERDICTS,
  type RuleVerdict,
} from '../types.ts';

/** Expected decision of a row; absent fields are not compared. */
export interface Expectation {
  readonly decision: RuleVerdict;
  readonly reason?: string | undefined;
  readonly rule?: string | undefined;
  readonly risk?: number | undefined;
  /** The arguments after the review, revised or as proposed. */
  readonly args?: JsonObject | undefined;
}

/** One situation with the expected decision. */
export interface TableRow {
  readonly name: string;
  readonly line: number;
  readonly action: ProposedAction;
  /** Values of facts; facts that are not listed have their initial value. */
  readonly facts: JsonObject;
  readonly agent: string;
  readonly tenant: string;
  readonly priority: PriorityName;
  readonly depth: number;
  /** The variable `budget`. */
  readonly budget: BudgetView;
  /** The variable `run`. */
  readonly effects: EffectsView;
  readonly toolRisk: number | undefined;
  readonly approvalRequiredRisk: number | undefined;
  /** Whether a human has approved the action, which skips `escalate` rules (SV-5). */
  readonly approvedByHuman: boolean;
  /** Expectation for the first pass over the rules. */
  readonly expect: Expectation | undefined;
  /** Expectation for the final decision after all revisions (SV-10). */
  readonly finally: Expectation | undefined;
  /** Receipt of the approved call, applied before `after` is compared. */
  readonly receipt: Pick<FactReceipt, 'status' | 'fields'> | undefined;
  /** Fact values after the approval, or after the receipt. */
  readonly after: JsonObject | undefined;
}

/** One approval by a human and whether the policy allows it (SV-5). */
export interface HumanRow {
  readonly name: string;
  readonly line: number;
  readonly tool: string;
  readonly args: JsonObject;
  readonly approver: string;
  readonly roles: readonly string[];
  /** Whether the approver started the run. */
  readonly startedRun: boolean;
  /** The expected basis when the approval is allowed. */
  readonly basis: string | undefined;
  /** The expected reason when the approval is rejected. */
  readonly refused: string | undefined;
}

/** A table that tests a policy (SV-3). */
export interface PolicyTable {
  readonly rows: readonly TableRow[];
  readonly human: readonly HumanRow[];
}

type Members = ReadonlyMap<string, Spot>;

const ROW_KEYS = [
  'name',
  'action',
  'facts',
  'agent',
  'tenant',
  'priority',
  'depth',
  'budget',
  'run',
  'tool_risk',
  'approval_required_risk',
  'approved_by_human',
  'expect',
  'finally',
  'receipt',
  'after',
];
const HUMAN_KEYS = ['name', 'tool', 'args', 'approver', 'role', 'started_run', 'basis', 'refused'];
const RECEIPT_STATUSES = ['succeeded', 'failed', 'refused', 'unknown'] as const;
const EXPECT_KEYS = ['decision', 'reason', 'rule', 'risk', 'args'];
const ACTION_KEYS = ['kind', 'tool', 'args', 'answer', 'agent', 'task'];

/**
 * Reads a table of situations and expected decisions (SV-3).
 * @throws PolicyError with file, line and column of every problem
 */
export function parsePolicyTable(text: string, options: { readonly file: string }): PolicyTable {
  const source = new DocumentReader(text, options.file);
  const members = source.map(source.root, { keys: ['rows', 'human'], required: ['rows'] });
  const entries = (key: string) => {
    const spot = members?.get(key);
    return (spot && source.list(spot)) ?? [];
  };
  const table = {
    rows: entries('rows').flatMap((spot) => readRow(source, spot) ?? []),
    human: entries('human').flatMap((spot) => readHumanRow(source, spot) ?? []),
  };
  source.assertValid();
  return table;
}

function readRow(source: DocumentReader, spot: Spot): TableRow | undefined {
  const members = source.map(spot, { keys: ROW_KEYS, required: ['name', 'action'] });
  if (members === undefined) return undefined;
  if (!['expect', 'finally', 'after'].some((key) => members.has(key))) {
    source.report(spot, `${spot.path} must have expect, finally or after.`);
  }
  const { text, json, integer } = readers(source, members);
  const priority = members.get('priority');
  const action = members.get('action');
  return {
    name: text('name') ?? '',
    line: source.lineOf(spot),
    action: (action && readAction(source, action)) ?? { kind: '' },
    facts: json('facts') ?? {},
    agent: text('agent') ?? 'agent',
    tenant: text('tenant') ?? 'tenant',
    priority: (priority && source.word(priority, PRIORITY_NAMES)) ?? 'NORMAL',
    depth: integer('depth', 1_000) ?? 0,
    budget: readBudget(source, members.get('budget')),
    effects: readEffects(source, members.get('run')),
    toolRisk: integer('tool_risk', 100),
    approvalRequiredRisk: integer('approval_required_risk', 100),
    approvedByHuman: readFlag(source, members.get('approved_by_human')),
    expect: readExpectation(source, members.get('expect')),
    finally: readExpectation(source, members.get('finally')),
    receipt: readReceipt(source, members.get('receipt')),
    after: json('after'),
  };
}

function readReceipt(source: DocumentReader, spot: Spot | undefined): TableRow['receipt'] {
  const members = spot && source.map(spot, { keys: ['status', 'fields'], required: ['status'] });
  const statusSpot = members?.get('status');
  const fieldsSpot = members?.get('fields');
  const status = statusSpot && source.word(statusSpot, RECEIPT_STATUSES);
  if (status === undefined) return undefined;
  return { status, fields: fieldsSpot && source.json(fieldsSpot) };
}

function readHumanRow(source: DocumentReader, spot: Spot): HumanRow | undefined {
  const members = source.map(spot, { keys: HUMAN_KEYS, required: ['name', 'tool', 'args'] });
  if (members === undefined) return undefined;
  if (members.has('basis') === members.has('refused')) {
    source.report(spot, `${spot.path} must have either basis or refused.`);
  }
  const { text, json } = readers(source, members);
  return {
    name: text('name') ?? '',
    line: source.lineOf(spot),
    tool: text('tool') ?? '',
    args: json('args') ?? {},
    approver: text('approver') ?? 'approver',
    roles: readRoles(source, members.get('role')),
    startedRun: readFlag(source, members.get('started_run')),
    basis: text('basis'),
    refused: text('refused'),
  };
}

/** Reads `budget`: the counters and limits of the budget. A missing counter is zero, a missing limit is unlimited. */
function readBudget(source: DocumentReader, spot: Spot | undefined): BudgetView {
  return { ...NO_USAGE, ...readCounts(source, spot, BUDGET_FIELDS, Number.MAX_SAFE_INTEGER) };
}

/** Reads `run`: the effect counters of the run. A missing counter is zero. */
function readEffects(source: DocumentReader, spot: Spot | undefined): EffectsView {
  return { ...NO_EFFECTS, ...readCounts(source, spot, EFFECT_FIELDS, 1_000_000) };
}

function readCounts(
  source: DocumentReader,
  spot: Spot | undefined,
  keys: readonly string[],
  most: number,
): Readonly<Record<string, number>> {
  const members = spot && source.map(spot, { keys });
  const counts = [...(members ?? [])].map(([name, member]) => [
    name,
    source.integer(member, 0, most) ?? 0,
  ]);
  return Object.fromEntries(counts);
}

/** Reads `role`: one name or a list of names. */
function readRoles(source: DocumentReader, spot: Spot | undefined): readonly string[] {
  if (spot === undefined) return [];
  const spots = isSeq(spot.node) ? (source.list(spot) ?? []) : [spot];
  return spots.flatMap((entry) => source.text(entry) ?? []);
}

/** Reads an action; its kind is optional when the other keys determine it. */
function readAction(source: DocumentReader, spot: Spot): ProposedAction | undefined {
  const members = source.map(spot, { keys: ACTION_KEYS });
  if (members === undefined) return undefined;
  const { text, json } = readers(source, members);
  const [tool, answer, agent, task] = [text('tool'), text('answer'), text('agent'), text('task')];
  const present = [tool, answer, agent].map((value) => value !== undefined);
  const kind = text('kind') ?? ACTION_KINDS[present.indexOf(true)];
  if (kind === undefined) {
    source.report(spot, `${spot.path} must have kind, tool, answer or agent.`);
    return undefined;
  }
  return { kind, name: tool, args: json('args'), answer, agent, task };
}

function readExpectation(source: DocumentReader, spot: Spot | undefined): Expectation | undefined {
  const members = spot && source.map(spot, { keys: EXPECT_KEYS, required: ['decision'] });
  const decisionSpot = members?.get('decision');
  const decision = decisionSpot && source.word(decisionSpot, RULE_VERDICTS);
  if (members === undefined || decision === undefined) return undefined;
  const { text, json, integer } = readers(source, members);
  return {
    decision,
    reason: text('reason'),
    rule: text('rule'),
    risk: integer('risk', 100),
    args: json('args'),
  };
}

function readFlag(source: DocumentReader, spot: Spot | undefined): boolean {
  const value = spot && source.literal(spot);
  if (spot !== undefined && typeof value !== 'boolean') {
    source.report(spot, `${spot.path} must be true or false.`);
  }
  return value === true;
}

function readers(source: DocumentReader, members: Members) {
  const at = <T>(key: string, read: (spot: Spot) => T): T | undefined => {
    const spot = members.get(key);
    return spot && read(spot);
  };
  return {
    text: (key: string) => at(key, (spot) => source.text(spot)),
    json: (key: string) => at(key, (spot) => source.json(spot)),
    integer: (key: string, most: number) => at(key, (spot) => source.integer(spot, 0, most)),
  };
}
