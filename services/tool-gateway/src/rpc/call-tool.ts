import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { admitEpoch } from '@writ/identity';
import { InternalError } from '@writ/kernel';
import type { CallContext, Handlers } from '@writ/rpc';
import { beginCall } from '../app/calls/begin-call.ts';
import { waitUntilUnowned } from '../app/calls/call-owner.ts';
import { endCall } from '../app/calls/end-call.ts';
import type { InFlightCall } from '../app/calls/in-flight-calls.ts';
import {
  callIdTaken,
  type PresentedCall,
  readPresentedCall,
  recordRefusal,
  refuseExpired,
} from '../app/calls/presented-call.ts';
import { runTool } from '../app/calls/run-tool.ts';
import { Turnstile } from '../app/calls/turnstile.ts';
import type { GatewayContext } from '../context.ts';
import type { Registry } from '../domain/registry.ts';
import type { ToolsInForce } from '../sources/live-tools.ts';
import type { OpenSource } from '../sources/open-source.ts';
import { type CallRow, findCall } from '../store/calls.ts';
import { rememberEpoch, seenEpoch } from '../store/epochs.ts';
import { toCallToolResponse } from '../wire/call-result.ts';

/** Writs that are verified at a time: enough that nobody waits for a thread that is free. */
const CHECKED_AT_A_TIME = 2;

/** Executes one action under a writ for exactly that action, once (TG-1, TG-2, TG-5, TG-8). */
export function callTool(context: GatewayContext): Handlers<typeof ToolGatewayService>['callTool'] {
  const turnstile = new Turnstile(CHECKED_AT_A_TIME);
  return async (request, call) => {
    const lane = context.tools.now.registry.tools.get(request.tool)?.source ?? '';
    try {
      const presented = await turnstile.pass(lane, () => readPresentedCall(context, request, call));
      const { row, replayed } = await resolveCall(context, presented, call);
      return toCallToolResponse(row, replayed);
    } catch (error) {
      return await recordRefusal(context, request, call, error);
    }
  };
}

/** What becomes of a call, or what became of it. */
async function resolveCall(
  context: GatewayContext,
  presented: PresentedCall,
  { signal }: CallContext,
): Promise<{ readonly row: CallRow; readonly replayed: boolean }> {
  const { store, clock, inFlightCalls } = context;
  const { writ } = presented;
  const known = await findCall(store.db, writ);
  // A new call comes to the transaction that admits its worker, and reads the epoch there.
  if (known !== undefined || inFlightCalls.has(writ)) await admitWorker(context, presented);
  if (known !== undefined) refuseOther(known, presented);
  if (known !== undefined && known.state !== 'intent') return { row: known, replayed: true };
  if (!inFlightCalls.has(writ)) refuseExpired(presented, clock.now());
  const { call, joined } = await inFlightCalls.join(writ, writ.tool, signal, (entry) =>
    attempt(context, presented, entry),
  );
  // Whoever joined may have come with another writ than the one that began it.
  refuseOther(call, presented);
  return { row: call, replayed: joined };
}

/** Refuses a worker that lost its lease, and remembers one that has it by now (RT-2). */
async function admitWorker(
  { store }: GatewayContext,
  { writ, epoch }: PresentedCall,
): Promise<void> {
  const seen = await seenEpoch(store.db, writ);
  admitEpoch(seen, epoch);
  if (seen === undefined || seen === epoch) return;
  // A repeat of what is recorded comes no further, and must shut out the former worker all the same.
  await store.transaction(async (trx) => {
    const highest = admitEpoch(await seenEpoch(trx, writ), epoch);
    await rememberEpoch(trx, writ, highest);
  });
}

/** A call id stands for one call for ever (TG-1). A burnt one was never told what it was for. */
function refuseOther(known: CallRow, { writ }: PresentedCall): void {
  if (known.state === 'burnt') return;
  if (known.tool !== writ.tool) throw callIdTaken(writ, 'tool');
  if (known.args_sha256 !== writ.argsSha256) throw callIdTaken(writ, 'arguments_json');
}

/** What becomes of a call, here or at the replica that is at it. */
async function attempt(
  context: GatewayContext,
  presented: PresentedCall,
  entry: InFlightCall,
): Promise<CallRow> {
  const { store } = context;
  const { writ } = presented;
  let deadReplicas: ReadonlySet<string> = new Set();
  for (;;) {
    const row = await attemptHere(context, presented, entry, deadReplicas);
    if (row !== undefined) return row;
    deadReplicas = await waitUntilUnowned(store, writ, entry.cancelSignal);
  }
}

/** One attempt at a call: a place at its source, intent, the tool, outcome; undefined while another replica is at it. */
async function attemptHere(
  context: GatewayContext,
  presented: PresentedCall,
  entry: InFlightCall,
  deadReplicas: ReadonlySet<string>,
): Promise<CallRow | undefined> {
  const { tools, wakeRelay } = context;
  // Waiting comes before the transaction that checks the freeze, never after it.
  const { registry, source, release } = await takePlace(tools, presented, entry.cancelSignal);
  try {
    entry.cancelSignal.throwIfAborted();
    const begun = await beginCall({ ...context, registry, deadReplicas }, presented);
    if (begun.kind === 'elsewhere') return undefined;
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
    const run = await runTool(context, runnable, entry.cancelSignal);
    const ended = await endCall(context, begun.call, begun.tool, run, entry.cancelSignal);
    wakeRelay();
    return ended;
  } finally {
    release();
  }
}

interface Place {
  /** In force when the place was had; the call is judged and run by it, whatever changes meanwhile. */
  readonly registry: Registry;
  /** Undefined for a tool that is not there. */
  readonly source: OpenSource | undefined;
  release(): void;
}

/** Waits for a place at the source that the tool has, and goes to the next one when that was replaced. */
async function takePlace(
  tools: GatewayContext['tools'],
  { writ }: PresentedCall,
  cancelSignal: AbortSignal,
): Promise<Place> {
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
