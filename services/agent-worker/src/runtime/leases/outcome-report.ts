import { derivedId, isStopReason, isWritError, omitUndefined } from '@writ/kernel';
import type { ReceiptBatch } from '../pending-receipts.ts';
import type { RunScope } from '../scope.ts';
import { PeerRefusal, type Stop } from '../unwinding.ts';

/**
 * An empty batch: the gateway also delivers the receipts to the supervisor, and the bus delivers the events (TG-8,
 * HK-1).
 */
const NOTHING: ReceiptBatch = { receipts: [], observations: [], events: [] };
const BATCH_REFUSALS = ['RECEIPT_MISMATCH', 'RECEIPT_WRONG_RUN', 'MESSAGE_TOO_LARGE'];

/** Maximum length of a reported stop reason, in characters. */
const MAX_STOP_REASON = 512;
/** Maximum length of the detail of a report, in bytes of UTF-8. */
const MAX_DETAIL_BYTES = 16_384;

/** The ending that the supervisor has recorded. */
interface RecordedEnding {
  readonly stopReason: string;
  /** The approved answer with which the agent ended. */
  readonly answer: string | undefined;
}

/**
 * Returns a stop that the supervisor accepts (BD-3). The code of an agent or of a middleware may set an invalid stop
 * reason, or a stop reason or detail that is too long or contains NUL characters, which PostgreSQL cannot store.
 */
export function reportableStop({ stopReason, detail, ...stop }: Stop): Stop {
  const reason = withoutNul(stopReason).slice(0, MAX_STOP_REASON).toWellFormed();
  return {
    ...stop,
    stopReason: isStopReason(reason) ? reason : 'error:invalid_reason',
    ...omitUndefined({ detail: detail === undefined ? undefined : shortened(detail) }),
  };
}

/** Returns the first characters of a detail, at most {@link MAX_DETAIL_BYTES}. */
function shortened(detail: string): string {
  const text = withoutNul(detail).toWellFormed();
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_DETAIL_BYTES));
  return text.slice(0, read);
}

function withoutNul(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

/**
 * Reports an outcome to the supervisor with the pending receipts, results and events. If the supervisor refuses a
 * receipt or the size or content of the request, reports the outcome without receipts, results and events, so that they
 * cannot prevent the end of an agent (BD-3).
 * @throws PeerRefusal when the supervisor refuses the report; Unwinding when the agent may not continue
 */
export async function reportOutcome(scope: RunScope, stop: Stop): Promise<RecordedEnding> {
  try {
    return await send(scope, stop, scope.carried.peek());
  } catch (error) {
    if (!mayConcernBatch(error)) throw error;
    return await send(scope, stop, NOTHING);
  }
}

async function send(
  { calls, peers, session }: RunScope,
  stop: Stop,
  carried: ReceiptBatch,
): Promise<RecordedEnding> {
  const { runId, instance } = session.lease;
  const requestId = derivedId('out', runId, instance, stop.stopReason, stop.callId ?? '');
  return await calls.call({ audience: 'supervisor', afterDeadline: true }, (options) =>
    peers.supervisor.reportOutcome({ ...stop, ...carried, requestId }, options),
  );
}

/** Whether the supervisor may have refused the request because of its batch, not because of the outcome. */
function mayConcernBatch(error: unknown): boolean {
  if (!(error instanceof PeerRefusal) || !isWritError(error.cause)) return false;
  const { kind, reason } = error.cause;
  return kind === 'invalid_argument' || BATCH_REFUSALS.includes(reason);
}
