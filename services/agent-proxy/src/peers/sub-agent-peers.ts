import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { isWritError } from '@writ/kernel';
import type { RpcClient } from '@writ/rpc';

/** A sub-agent that a client names. */
export interface SubAgentSpawn {
  readonly callId: string;
  /** Name of the manifest of the sub-agent. */
  readonly agent: string;
  readonly task: string;
  /** SHA-256 of the id by which the client names it. */
  readonly clientId: string;
}

/** The result of a reviewed spawn. */
export type SpawnAnswer =
  | { readonly kind: 'spawned'; readonly instance: string }
  | { readonly kind: 'pending' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'limited'; readonly reason: string }
  /** The sub-agent is not ready: another request, possibly on another replica, is spawning it. */
  | { readonly kind: 'starting' };

/** The credentials of the parent. */
export interface ParentAuth {
  readonly agentToken: string;
  readonly slotGrant?: string;
  readonly epoch: bigint;
}

/** The supervisor RPCs for sub-agents (AP-6). */
export interface SubAgentPeers {
  /** Reviews a spawn and waits until the sub-agent has been delivered; a repeated call returns the same sub-agent. */
  spawnChild(spawn: SubAgentSpawn, auth: ParentAuth): Promise<SpawnAnswer>;
  /** Ends a sub-agent and waits until its slot is released. */
  endChild(callId: string, instance: string, auth: ParentAuth): Promise<void>;
}

/** Creates the peers of sub-agents from RPC clients of the supervisor. */
export function subAgentPeers(
  client: RpcClient<typeof SupervisionService>,
  reviews: RpcClient<typeof ReviewService>,
): SubAgentPeers {
  return {
    async spawnChild({ callId, agent, task, clientId }, auth) {
      const request = { callId, delegation: { agent, task }, correlationId: clientId };
      const answer = await client
        .spawnChild(request, { ...auth, retry: true })
        .catch((error: unknown) => {
          if (!isWritError(error) || error.reason !== 'CALL_ID_REUSED') throw error;
          return undefined;
        });
      // An earlier request has already proposed the sub-agent with another task: its decision applies.
      if (answer === undefined) {
        return answerOf((await reviews.getDecision({ callId }, auth)).decision);
      }
      const { child, slotRefusal, decision } = answer;
      if (child !== undefined) return { kind: 'spawned', instance: child.instance };
      if (slotRefusal !== '') return { kind: 'limited', reason: slotRefusal };
      return answerOf(decision);
    },
    async endChild(callId, childInstance, auth) {
      const request = { callId, childInstance, outcome: 'timed_out' };
      await client.endChild(request, { ...auth, retry: true });
    },
  };
}

/** Returns the answer for a decision when no sub-agent was returned. */
function answerOf(decision: Decision | undefined): SpawnAnswer {
  if (decision === undefined || decision.executedAction !== undefined) return { kind: 'starting' };
  if (!decision.settled) return { kind: 'pending' };
  return { kind: 'refused', reason: decision.stopReason || decision.reason };
}
