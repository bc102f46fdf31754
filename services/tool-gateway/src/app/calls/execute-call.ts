import { InternalError } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import type { Registry } from '../../domain/registry.ts';
import type { ToolsInForce } from '../../sources/live-tools.ts';
import type { OpenSource } from '../../sources/open-source.ts';
import { type CallRow, findCall } from '../../store/calls.ts';
import { beginCall } from './begin-call.ts';
import { waitUntilUnowned } from './call-owner.ts';
import { endCall } from './end-call.ts';
import type { InFlightCall } from './in-flight-calls.ts';
import { type PresentedCall, rejectExpired } from './presented-call.ts';
import { admitRepeat, recordedOutcome, rejectOtherCall } from './recorded-call.ts';
import { runTool } from './run-tool.ts';

/**
 * A call with an outcome. `replayed` is true when the outcome was already recorded, or when this request waited for an
 * attempt that another request had begun in this process.
 */
export interface ExecutedCall {
  readonly row: CallRow;
  readonly replayed: boolean;
}

/**
 * Returns the outcome of a call: the recorded outcome, the outcome of the call in flight, or the outcome of executing
 * the call (TG-1, TG-5).
 * @param signal aborts when the caller disconnects
 */
export async function executeCall(
  context: GatewayContext,
  presented: PresentedCall,
  signal: AbortSignal,
): Promise<ExecutedCall> {
  const { store, clock, inFlightCalls } = context;
  const { writ } = presented;
  const known = await findCall(store.db, writ);
  // For a new call, the transaction that records its intent checks the epoch.
  if (known !== undefined || inFlightCalls.has(writ)) await admitRepeat(context, presented);
  const recorded = known && recordedOutcome(known, presented);
  if (recorded !== undefined) return { row: recorded, replayed: true };
  if (!inFlightCalls.has(writ)) rejectExpired(presented, clock.now());
  const { call, joined } = await inFlightCalls.join(writ, writ.tool, signal, (entry) =>
    attempt(context, presented, entry),
  );
  // A request that joined the call may contain a different writ than the request that began the call.
  rejectOtherCall(call, presented);
  return { row: call, replayed: joined };
}

/** Attempts a call until it has an outcome, waiting while another replica owns it. */
async function attempt(
  context: GatewayContext,
  presented: PresentedCall,
  entry: InFlightCall,
): Promise<CallRow> {
  let deadReplicas: ReadonlySet<string> = new Set();
  for (;;) {
    const row = await attemptOnce(context, presented, entry, deadReplicas);
    if (row !== undefined) return row;
    deadReplicas = await waitUntilUnowned(context.store, presented.writ, entry.cancelSignal);
  }
}

/**
 * Makes one attempt: acquires a slot of the source, records the intent, runs the tool and records the outcome.
 * @returns undefined when another replica owns the call
 */
async function attemptOnce(
  context: GatewayContext,
  presented: PresentedCall,
  entry: InFlightCall,
  deadReplicas: ReadonlySet<string>,
): Promise<CallRow | undefined> {
  const { tools, wakeRelay } = context;
  const { cancelSignal } = entry;
  // The slot is acquired before the transaction that checks freezes, so that no call starts after a freeze.
  const { registry, source, release } = await acquireSlot(tools, presented, cancelSignal);
  try {
    cancelSignal.throwIfAborted();
    const begun = await beginCall({ ...context, registry, deadReplicas }, presented);
    if (begun.kind === 'owned_by_peer') return undefined;
    wakeRelay();
    entry.recorded = begun.kind === 'recorded';
    if (begun.kind !== 'run') return begun.call;
    if (source === undefined) {
      throw new InternalError(
        'TOOL_SOURCE_CLOSED',
        `The source of ${begun.tool.name} is not open.`,
      );
    }
    entry.startedAt = begun.call.started_at;
    entry.outlivesCallers = begun.tool.sideEffect === 'destructive';
    const runnable = { ...begun, source, argumentsJson: presented.argumentsJson };
    const run = await runTool(context, runnable, cancelSignal);
    const ended = await endCall(context, begun, run, cancelSignal);
    wakeRelay();
    return ended;
  } finally {
    release();
  }
}

interface AcquiredSlot {
  /** The registry at the time of acquisition; the call is checked and run against it. */
  readonly registry: Registry;
  /** Undefined for a tool that does not exist. */
  readonly source: OpenSource | undefined;
  release(): void;
}

/** Waits for a slot of the tool's source; waits at the new source when a reload replaces the source. */
async function acquireSlot(
  tools: GatewayContext['tools'],
  { writ }: PresentedCall,
  cancelSignal: AbortSignal,
): Promise<AcquiredSlot> {
  const sourceIn = ({ registry, find }: ToolsInForce) => {
    const tool = registry.tools.get(writ.tool);
    return tool && find(tool.source);
  };
  for (;;) {
    const source = sourceIn(tools.now);
    if (source === undefined) {
      return { registry: tools.now.registry, source, release: () => undefined };
    }
    const release = await source.slots.acquire(cancelSignal);
    const { now } = tools;
    if (sourceIn(now) === source) return { registry: now.registry, source, release };
    release();
  }
}
