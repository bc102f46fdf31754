import type { EndChildRequest } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import {
  type AgentKey,
  type AgentRef,
  InvalidRequestError,
  NotFoundError,
  UnavailableError,
} from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import { findAgent, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { endChild as recordChildEnd } from '../../store/agent/endings.ts';
import {
  agentsFrom,
  childKeyOf,
  findEndedUnder,
  findSpawnOf,
  type SpawnRow,
  saveSpawn,
} from '../../store/agent/spawns.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { admitAgent, callingAgent } from './admit-agent.ts';
import { awaitRunChange } from './await-run.ts';

/** How a child ended, and the agents that were resumed with its slot. */
export interface EndedChild {
  readonly stopReason: string;
  readonly resumed: AgentRef[];
}

/**
 * Ends a child of the calling agent and waits until its slot is released.
 * @throws NotFoundError CHILD_NOT_FOUND; InvalidRequestError CALL_ID_REUSED; UnavailableError END_PENDING; the errors
 *   of admitAgent
 */
export async function endChild(
  context: SupervisorContext,
  request: EndChildRequest,
  call: CallContext,
): Promise<EndedChild> {
  const { store } = context;
  const record = async ({ trx, at }: Tx): Promise<AgentKey> => {
    const parent = keyOf(await admitAgent(trx, call));
    const spawn = await ownSpawn(trx, parent, request);
    const key = childKeyOf(spawn);
    if (spawn.end_call_id === null) {
      const { callId, outcome } = request;
      await saveSpawn(trx, key, { end_call_id: callId, end_outcome: outcome });
    }
    const detail = `Ended by its parent: ${spawn.end_outcome ?? request.outcome}.`;
    await recordChildEnd(trx, { ...key, stopReason: 'cancelled', detail }, at);
    return key;
  };
  const child = await transact(context, record, { run: callingAgent(call) });
  const spawn = await awaitRunChange(context, child, call.signal, async () => {
    const row = await findSpawnOf(store.db, child);
    return row?.resumed === null ? undefined : row;
  });
  if (spawn === undefined) throw endPending(request);
  const { ending_stop_reason: stopReason } = await loadAgent(store.db, child);
  return { stopReason: stopReason ?? '', resumed: agentsFrom(spawn.resumed) };
}

/**
 * The spawn of a child of the caller.
 * @throws NotFoundError CHILD_NOT_FOUND for every other agent; InvalidRequestError CALL_ID_REUSED
 */
async function ownSpawn(
  trx: SupervisorTransaction,
  parent: AgentKey,
  { childInstance, callId, outcome }: EndChildRequest,
): Promise<SpawnRow> {
  const child = { ...parent, instance: childInstance };
  const spawn = await findSpawnOf(trx, child);
  const isOwn = spawn?.parent_instance === parent.instance;
  if (spawn === undefined || !isOwn || (await findAgent(trx, child)) === undefined) {
    throw new NotFoundError(
      'CHILD_NOT_FOUND',
      `Agent ${parent.instance} has no child ${childInstance}.`,
      { field: 'child_instance', run_id: parent.runId },
    );
  }
  const before = await findEndedUnder(trx, { ...parent, callId });
  if (before === undefined) return spawn;
  if (before.child_instance === childInstance && before.end_outcome === outcome) return spawn;
  throw new InvalidRequestError(
    'CALL_ID_REUSED',
    `call_id ${callId} was already used for a different EndChild request; use a new call_id.`,
    { field: 'call_id', call_id: callId },
  );
}

function endPending({ childInstance }: EndChildRequest): UnavailableError {
  return new UnavailableError(
    'END_PENDING',
    `Agent ${childInstance} is still being ended; repeat the call.`,
    { agent: childInstance },
  );
}
