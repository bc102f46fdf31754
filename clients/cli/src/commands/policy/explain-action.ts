import {
  canonicalJson,
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '@writ/kernel';
import {
  type Decision,
  explainDecision,
  type Policy,
  parsePolicyTable,
  reviewRow,
} from '@writ/policy';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';
import { readPolicy } from './documents.ts';
import { reportProblems } from './report-problems.ts';

/** Options of `writ policy explain`. */
export interface ExplainOptions extends FormatOptions {
  readonly action: string;
  readonly facts: string;
  readonly agent: string;
  readonly tenant: string;
  readonly priority: string;
  readonly approved?: boolean;
  readonly tools?: string;
}

/**
 * Prints the evaluation of an action: a line for each evaluated rule, in passes until no rule revises the action
 * (SV-3, SV-10). The exit code is 0 for any decision.
 */
export async function explainAction(
  io: CliIo,
  file: string,
  options: ExplainOptions,
): Promise<Exit> {
  return await reportProblems(io, options, () => printPasses(io, file, options));
}

async function printPasses(io: CliIo, file: string, options: ExplainOptions): Promise<Exit> {
  const policy = await readPolicy(file, options.tools);
  const { passes, decision } = reviewRow(policy, rowOf(policy, options));
  const { verdict, reason, risk, policyVersion } = decision;
  const data = {
    ...{ verdict, reason, risk, policyVersion },
    passes: passes.map(({ decision: { why, revisedAction } }) => ({ rules: why, revisedAction })),
  };
  showData(io, options, data, () => [
    ...passes.flatMap((pass, index) => [
      ...(passes.length > 1 ? [`Pass ${index + 1}:`] : []),
      ...explainDecision(policy, pass.decision),
      ...revisedLine(pass.decision),
    ]),
    ...(decision === passes.at(-1)?.decision ? [] : [`${verdict}: ${reason}`]),
  ]);
  return EXIT.success;
}

function revisedLine({ revisedAction }: Decision): string[] {
  if (revisedAction === undefined) return [];
  return [`revised arguments: ${canonicalJson(revisedAction.args ?? {})}`];
}

/** The options as a row of a policy table, which the table parser validates. */
function rowOf(policy: Policy, options: ExplainOptions) {
  const { agent, tenant, priority, approved = false } = options;
  const row = {
    name: 'the action',
    action: jsonOf('--action', options.action),
    facts: jsonOf('--facts', options.facts),
    agent,
    tenant,
    priority,
    approved_by_human: approved,
    expect: { decision: 'block' },
  };
  const text = JSON.stringify({ rows: [row] });
  const [read] = parsePolicyTable(text, { file: `${policy.file} (the action given)` }).rows;
  if (read !== undefined) return read;
  throw new InvalidRequestError('INVALID_ACTION', '--action must contain an action.');
}

function jsonOf(option: string, text: string): JsonObject {
  try {
    const value: JsonValue = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InvalidRequestError('INVALID_OPTION', `${option} must be a JSON object.`, {
    field: option,
  });
}
