import type {
  EndChildRequest,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { InvalidRequestError, NotFoundError, UnavailableError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { admitAgent } from '../../app/agent/admit-agent.ts';
import { waitFor } from '../../app/agent/await-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { type AgentKey, findAgent, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { endChild as endChildAgent } from '../../store/agent/endings.ts';
import {
  agentsFrom,
  childKeyOf,
  findEndedUnder,
  findSpawnOf,
  type SpawnRow,
  saveSpawn,
} from '../../store/agent/spawns.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/**
 * EndChild: ends a child of the calling agent in every case, and answers once its slot is back. An
 * ending that it has already stands; ending it again changes nothing (SB-3, RT-4).
 */
export function endChild(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.endChild> {
  return async (request, call) => {
    const { store, clock } = context;
    const child = await store.transaction(async (trx) => {
      const parent = keyOf(await admitAgent(trx, call));
      const spawn = await ownSpawn(trx, parent, request);
      const key = childKeyOf(spawn);
      if (spawn.end_call_id === null) {
        const { callId, outcome } = request;
        await saveSpawn(trx, key, { end_call_id: callId, end_outcome: outcome });
      }
      const detail = `Ended by its parent: ${spawn.end_outcome ?? request.outcome}.`;
      await endChildAgent(trx, { ...key, stopReason: 'cancelled', detail }, clock.now());
      return key;
    });
    const spawn = await waitFor(context, child, call.signal, async () => {
      const row = await findSpawnOf(store.db, child);
      return row?.resumed === null ? undefined : row;
    });
    if (spawn === undefined) throw stillEnding(request);
    const { ending_stop_reason: stopReason } = await loadAgent(store.db, child);
    return { stopReason: stopReason ?? '', resumed: agentsFrom(spawn.resumed) };
  };
}

/**
 * The spawn of a child that is the caller's.
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
    `call_id ${callId} was used for another ending; a call_id names one ending.`,
    { field: 'call_id', call_id: callId },
  );
}

function stillEnding({ childInstance }: EndChildRequest): UnavailableError {
  return new UnavailableError(
    'END_PENDING',
    `Agent ${childInstance} is still being ended; repeat the call.`,
    { agent: childInstance },
  );
}
