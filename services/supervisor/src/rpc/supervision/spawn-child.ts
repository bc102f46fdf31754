import { toJson } from '@bufbuild/protobuf';
import {
  type SpawnChildRequest,
  SpawnChildRequestSchema,
  type SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { type JsonObject, PreconditionError, UnavailableError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { callingAgent } from '../../app/agent/admit-agent.ts';
import { waitFor } from '../../app/agent/await-run.ts';
import { placeSpawn } from '../../app/agent/enqueue-spawn.ts';
import { readCarriedReceipts } from '../../app/review/carried-receipts.ts';
import { reviewProposal } from '../../app/review/review-proposal.ts';
import type { SupervisorContext } from '../../context.ts';
import type { Proposal } from '../../domain/review/proposal.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { agentsFrom, childKeyOf, findSpawn, type SpawnRow } from '../../store/agent/spawns.ts';
import type { CallKey } from '../../store/review/decisions.ts';
import { loadRun } from '../../store/run/runs.ts';
import { agentRefOf, supervisionMessage } from '../../wire/supervision.ts';

/**
 * SpawnChild: reviews a delegation like any action and, once it is approved, waits for the order that
 * makes the child whole. A repeat gets the same decision and the same child (SV-1, SUP-9).
 */
export function spawnChild(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.spawnChild> {
  return async (request, call) => {
    const startedAt = performance.now();
    const key: CallKey = { ...callingAgent(call), callId: request.callId };
    const recordCarried = await readCarriedReceipts(context, key, request);
    const proposal = proposalFrom(request);
    const { decision, placed } = await context.store.transaction(async (trx) => {
      const findTool = () => undefined;
      const review = { call, proposal, findTool, recordCarried, startedAt };
      return {
        decision: await reviewProposal(trx, context, review),
        placed: await placeSpawn(trx, context, key, request),
      };
    });
    if (!placed) return { decision };
    const spawn = await waitFor(context, key, call.signal, async () => {
      const row = await findSpawn(context.store.db, key);
      return row?.state === 'pending' ? undefined : row;
    });
    if (spawn === undefined) throw stillPending(request.callId);
    return { decision, ...(await outcomeOf(context, spawn)) };
  };
}

/** What became of a spawn, for the answer. */
async function outcomeOf({ store }: SupervisorContext, spawn: SpawnRow) {
  if (spawn.state === 'refused') return { slotRefusal: spawn.why_not ?? '' };
  if (spawn.state === 'failed') throw failed(spawn);
  const key = childKeyOf(spawn);
  const child = await loadAgent(store.db, key);
  const [paused] = agentsFrom(spawn.paused);
  return {
    child: agentRefOf(child),
    supervision: supervisionMessage(await loadRun(store.db, key), child),
    ...(paused && { paused }),
  };
}

/** A reused call_id is noticed by everything that is asked for, but for what is only carried. */
function proposalFrom(request: SpawnChildRequest): Proposal {
  const { agent = '', task = '' } = request.delegation ?? {};
  const asked = { ...request, receipts: [], observations: [] };
  const terms = toJson(SpawnChildRequestSchema, asked) as JsonObject;
  return {
    callId: request.callId,
    modelCallId: '',
    content: { kind: 'delegation', agent, task, terms },
    composed: false,
    partial: false,
  };
}

function stillPending(callId: string): UnavailableError {
  return new UnavailableError(
    'SPAWN_PENDING',
    `The agent for call ${callId} is still being set up; repeat the call.`,
    { call_id: callId },
  );
}

function failed({ child_name: name, call_id: callId, why_not: reason }: SpawnRow) {
  return new PreconditionError(
    'SPAWN_FAILED',
    `An agent ${name} could not be set up: ${reason}. What was taken for it is given back.`,
    { call_id: callId, cause: reason ?? '' },
  );
}
