import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ActionSchema } from '@writ/contracts/writ/review/v1/action_pb';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';

/** An action in the JSON format in which a model writes it. */
export type RefundAction =
  | { readonly kind: 'tool'; readonly name: string; readonly args: JsonObject }
  | { readonly kind: 'final'; readonly answer: string };

/** The result of the refund desk's rules for an action. */
export interface Ruling {
  readonly verdict: 'approve' | 'block' | 'escalate' | 'invalid';
  readonly reason: string;
  readonly action?: RefundAction;
}

/**
 * Returns the verdict of the refund desk's rules on an action; replaces the review of the supervisor in worker tests.
 */
export function ruleOn(rawText: string, executed: readonly string[]): Ruling {
  const action = readAction(rawText);
  if (action === undefined) return { verdict: 'invalid', reason: 'non_json' };
  if (action.kind === 'final') {
    return executed.includes('get_refund_context')
      ? { verdict: 'approve', reason: 'final_with_context', action }
      : { verdict: 'block', reason: 'final_requires_context', action };
  }
  if (action.name === 'issue_refund' && Number(action.args.amount_usd) > 1000) {
    return { verdict: 'escalate', reason: 'high_refund_requires_human', action };
  }
  return { verdict: 'approve', reason: 'within_limits', action };
}

/** Converts an action into its message. */
export function actionMessage(action: RefundAction): MessageInitShape<typeof ActionSchema> {
  return action.kind === 'final'
    ? { kind: { case: 'final', value: { answer: action.answer } } }
    : {
        kind: {
          case: 'tool',
          value: { tool: action.name, argumentsJson: canonicalJson(action.args) },
        },
      };
}

/** Returns the result of a call of a refund desk tool. */
export function runTool(tool: string, args: JsonObject): JsonObject {
  switch (tool) {
    case 'get_refund_context':
      return { user: { id: 42, name: 'Anna' }, billing: { last_charge_usd: 1200 } };
    case 'issue_refund':
      return { status: 'ok', refund: { amount_usd: args.amount_usd ?? null } };
    default:
      return { status: 'ok', email: { amount_usd: args.amount_usd ?? null } };
  }
}

/** The refund desk's tools in the gateway's catalog. */
export const REFUND_TOOLS = [
  tool('get_refund_context', 'Get user profile and billing facts', { user_id: 'integer' }, []),
  tool(
    'issue_refund',
    'Issue refund in USD',
    { user_id: 'integer', amount_usd: 'number', reason: 'string' },
    ['reason'],
  ),
  tool(
    'send_refund_email',
    'Send refund confirmation email',
    { user_id: 'integer', amount_usd: 'number', message: 'string' },
    [],
  ),
];

function tool(
  name: string,
  description: string,
  types: Readonly<Record<string, string>>,
  fillable: readonly string[],
) {
  const properties = Object.fromEntries(
    Object.entries(types).map(([key, type]) => [
      key,
      { type, ...(fillable.includes(key) && { fillable: true }) },
    ]),
  );
  const schema = { type: 'object', properties, required: Object.keys(types) };
  return { name, description, inputSchemaJson: JSON.stringify(schema) };
}

function readAction(rawText: string): RefundAction | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(rawText === '' ? '{}' : rawText);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  if (value.kind === 'final') return { kind: 'final', answer: String(value.answer) };
  const { name, args } = value;
  return value.kind === 'tool'
    ? { kind: 'tool', name: String(name), args: asObject(args) }
    : undefined;
}

function asObject(value: JsonValue | undefined): JsonObject {
  return value !== undefined && isJsonObject(value) ? value : {};
}
