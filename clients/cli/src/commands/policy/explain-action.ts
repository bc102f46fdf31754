import {
  canonicalJson,
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '@writ/kernel';
import { explainDecision, type Policy, parsePolicyTable, reviewRow } from '@writ/policy';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { readPolicy } from './documents.ts';

/** The situation that an action is judged in. */
export interface ExplainOptions {
  readonly action: string;
  readonly facts: string;
  readonly agent: string;
  readonly tenant: string;
  readonly priority: string;
  readonly approved?: boolean;
  readonly tools?: string;
}

/**
 * Prints how the rules come to their answer: a line for each rule that was looked at, pass after pass
 * until nothing is revised any more (SV-3, SV-10). An explanation holds whatever the answer is.
 */
export async function explainAction(
  io: CliIo,
  file: string,
  options: ExplainOptions,
): Promise<Exit> {
  const policy = await readPolicy(file, options.tools);
  const { passes, decision } = reviewRow(policy, rowOf(policy, options));
  for (const [index, pass] of passes.entries()) {
    if (passes.length > 1) io.print(`Pass ${index + 1}:`);
    for (const line of explainDecision(policy, pass.decision)) io.print(line);
    const { revisedAction } = pass.decision;
    if (revisedAction !== undefined) {
      io.print(`revised arguments: ${canonicalJson(revisedAction.args ?? {})}`);
    }
  }
  if (decision !== passes.at(-1)?.decision) io.print(`${decision.verdict}: ${decision.reason}`);
  return EXIT.holds;
}

/** A row of a table says all of a situation, and its reader checks it. */
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
  throw new InvalidRequestError('INVALID_ACTION', '--action must say what is proposed.');
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
