import {
  type JsonObject,
  sha256Hex,
  type ToolCall,
  type ToolContext,
  ToolFailure,
  type ToolFunction,
  type Tools,
} from '@writ/kernel';
import { findCustomer } from './customers.ts';
import { RefundLedger } from './ledger.ts';

const POLICY_HINT = { auto_refund_limit_usd: 1000, refund_window_days: 14 };
const TEMPLATE = 'refund_confirmation_v2';

/** The refund tools. Authorization is decided by the policy, not here. */
export async function createTools({ dataDir, clock }: ToolContext): Promise<Tools> {
  const ledger = new RefundLedger(dataDir);
  const now = () => clock.now().toISOString();
  return {
    get_refund_context: getRefundContext,
    issue_refund: async (args, call) => issueRefund(ledger, now(), args, call),
    send_refund_email: async (args, call) => sendRefundEmail(ledger, now(), args, call),
    [Symbol.asyncDispose]: async () => ledger.close(),
  };
}

const getRefundContext: ToolFunction = async (args) => {
  const userId = numberOf(args, 'user_id');
  const found = findCustomer(userId);
  if (found === undefined) return { error: `context_not_found_for_user:${userId}` };
  const { customer, billing } = found;
  return {
    user: { ...customer },
    billing: {
      plan: billing.plan,
      currency: billing.currency,
      last_charge_usd: billing.lastChargeCents / 100,
      days_since_payment: billing.daysSincePayment,
    },
    policy_hint: { ...POLICY_HINT },
  };
};

function issueRefund(
  ledger: RefundLedger,
  now: string,
  args: JsonObject,
  call: ToolCall,
): JsonObject {
  const userId = numberOf(args, 'user_id');
  const amountUsd = numberOf(args, 'amount_usd');
  const found = findCustomer(userId);
  if (found === undefined) return refused(`refund_user_not_found:${userId}`);
  if (amountUsd <= 0) return refused('refund_amount_must_be_positive');
  const amountCents = centsOf(amountUsd);
  if (amountCents === undefined) return refused('refund_amount_not_in_whole_cents');
  const { lastChargeCents, currency } = found.billing;
  if (amountUsd > lastChargeCents / 100) {
    return { ...refused('refund_exceeds_last_charge'), max_refund_usd: lastChargeCents / 100 };
  }
  throwIfCancelled(call);
  const booked = ledger.refund({
    idempotency_key: call.idempotencyKey,
    user_id: userId,
    amount_cents: amountCents,
    currency,
    reason: textOf(args, 'reason').trim(),
    transaction_id: `rf_${userId}_${suffix(call)}`,
    run_id: call.runId,
    issued_at: now,
  });
  return {
    status: 'ok',
    refund: {
      user_id: booked.user_id,
      currency: booked.currency,
      amount_usd: booked.amount_cents / 100,
      reason: booked.reason,
      transaction_id: booked.transaction_id,
    },
  };
}

function sendRefundEmail(
  ledger: RefundLedger,
  now: string,
  args: JsonObject,
  call: ToolCall,
): JsonObject {
  const userId = numberOf(args, 'user_id');
  const found = findCustomer(userId);
  if (found === undefined) return refused(`email_user_not_found:${userId}`);
  const amountCents = centsOf(numberOf(args, 'amount_usd'));
  if (amountCents === undefined) return refused('email_amount_not_in_whole_cents');
  throwIfCancelled(call);
  const written = ledger.email({
    idempotency_key: call.idempotencyKey,
    user_id: userId,
    recipient: `${found.customer.name.toLowerCase()}@example.com`,
    template: TEMPLATE,
    amount_cents: amountCents,
    message: textOf(args, 'message'),
    email_id: `em_${userId}_${suffix(call)}`,
    run_id: call.runId,
    written_at: now,
  });
  return {
    status: 'ok',
    email: {
      to: written.recipient,
      template: written.template,
      amount_usd: written.amount_cents / 100,
      message: written.message,
      email_id: written.email_id,
    },
  };
}

function refused(error: string): { readonly status: string; readonly error: string } {
  return { status: 'error', error };
}

/** Throws a ToolFailure if the call was cancelled before execution, so that its outcome is not recorded as unknown. */
function throwIfCancelled({ signal }: ToolCall): void {
  if (signal.aborted) throw new ToolFailure('The call was cancelled before anything was done.');
}

/** Returns a suffix for ids that is the same for every repeat of a call. */
function suffix({ idempotencyKey }: ToolCall): string {
  return sha256Hex(idempotencyKey).slice(0, 12);
}

function numberOf(args: JsonObject, name: string): number {
  const value = args[name];
  if (typeof value === 'number') return value;
  throw new ToolFailure(`${name} must be a number.`);
}

/**
 * Returns the amount in cents; undefined if it has fractions of a cent, because an approved amount is never rounded.
 */
function centsOf(usd: number): number | undefined {
  const cents = Math.round(usd * 100);
  return cents / 100 === usd ? cents : undefined;
}

function textOf(args: JsonObject, name: string): string {
  const value = args[name];
  if (typeof value === 'string') return value;
  throw new ToolFailure(`${name} must be a string.`);
}
