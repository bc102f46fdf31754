import { durationFromMs, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Slot, type SlotChange, SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import {
  type GetPoolResponse,
  type ReprioritizeResponse,
  SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import type { Priority as PriorityMessage } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { type AgentKey, type AgentRef, BudgetExhaustedError, type RunKey } from '@writ/kernel';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { AgentRow } from '../store/agent/agents.ts';
import type { RunRow } from '../store/run/runs.ts';
import { spawnBudgetMessage } from '../wire/budget.ts';
import { agentRefOf, parentRefOf, priorityMessage, rootRefOf } from '../wire/supervision.ts';
import type { OpenPage } from './open-page.ts';

/** The result of acquiring a slot. */
export type SlotAnswer =
  | {
      readonly kind: 'granted';
      /** Empty when the agent may not act now. */
      readonly grant: string;
      /** Time of the acquisition on spawn-budget's clock; omitted when the response has none. */
      readonly acquiredAt?: Date;
      /** The agents that spawn-budget paused to free the slot. */
      readonly paused: readonly AgentRef[];
    }
  | { readonly kind: 'refused'; readonly sentence: string };

/**
 * Client of spawn-budget. Every call is idempotent. The order engine repeats the calls of orders; the client retries no
 * call.
 */
export interface SpawnBudgetPeer {
  /** Opens a run's pool with the root in its first slot; returns the slot grant of the root. */
  openPool(requestId: string, run: RunRow): Promise<string>;
  /** Acquires a slot for a child; returns spawn-budget's error message if a cap is reached (SB-2). */
  acquire(requestId: string, child: AgentRow): Promise<SlotAnswer>;
  /**
   * Releases an agent's slot; returns the agents that received the slot and were resumed. Does nothing for an unknown
   * agent (SB-3).
   */
  release(requestId: string, agent: AgentKey): Promise<readonly AgentRef[]>;
  /** Returns a page of the runs with an open pool, by tenant and run (BD-3). */
  openPools(page: OpenPage<RunKey>): Promise<RunKey[]>;
  /**
   * Releases every slot of an ended run.
   * @param mayWait whether spawn-budget may delay its response, because no step
   * depends on it; default false
   */
  closePool(requestId: string, run: RunKey, mayWait?: boolean): Promise<void>;
  /**
   * Returns the pool of a run.
   * @throws NotFoundError POOL_NOT_FOUND
   */
  getPool(run: RunKey): Promise<GetPoolResponse>;
  /**
   * Changes an agent's priority (SB-5); a repeat changes nothing.
   * @throws NotFoundError POOL_NOT_FOUND, AGENT_NOT_FOUND; PreconditionError POOL_CLOSED, DEADLINE_PASSED,
   *   AGENT_RELEASED
   */
  reprioritize(
    requestId: string,
    agent: AgentKey,
    priority: PriorityMessage,
  ): Promise<Reprioritized>;
  close(): void;
}

/** Returns whether a slot has a lease, which its agent needs to act. */
export function hasLease({ state }: Slot): boolean {
  return state === SlotState.ACTIVE;
}

/** The slot after a change of priority, and the agents that the change paused or resumed. */
export interface Reprioritized {
  readonly response: ReprioritizeResponse;
  readonly paused: readonly AgentRef[];
  readonly resumed: readonly AgentRef[];
}

/** Creates the gRPC client of spawn-budget. */
export function createSpawnBudgetPeer(options: RpcClientOptions): SpawnBudgetPeer {
  const client = createRpcClient(SpawnBudgetService, options);
  return {
    async openPool(requestId, run) {
      const { slot } = await client.openPool({
        requestId,
        tenant: run.tenant,
        runId: run.run_id,
        sessionId: run.session_id,
        root: rootRefOf(run),
        priority: priorityMessage(run.priority),
        budget: spawnBudgetMessage(JSON.parse(run.spawn_budget)),
        ...(run.deadline_at && { deadline: timestampFromDate(run.deadline_at) }),
      });
      return slot?.grant ?? '';
    },
    async acquire(requestId, child) {
      const parent = parentRefOf(child);
      try {
        const { slot, changes } = await client.acquire({
          requestId,
          tenant: child.tenant,
          runId: child.run_id,
          agent: agentRefOf(child),
          ...(parent && { parent }),
          depth: child.depth,
          priority: priorityMessage(child.priority),
        });
        const paused = movedTo(changes, SlotState.PAUSED);
        const acquiredAt = slot?.acquireTime && timestampDate(slot.acquireTime);
        const grant = slot?.grant ?? '';
        return { kind: 'granted', grant, paused, ...(acquiredAt && { acquiredAt }) };
      } catch (error) {
        if (!(error instanceof BudgetExhaustedError)) throw error;
        return { kind: 'refused', sentence: error.message };
      }
    },
    async release(requestId, { tenant, runId, instance }) {
      const request = { requestId, tenant, runId, agentInstance: instance };
      const { changes } = await client.release(request);
      return movedTo(changes, SlotState.ACTIVE);
    },
    async openPools({ after, limit: pageSize, minAgeMs }) {
      const minAge = durationFromMs(minAgeMs);
      const { pools } = await client.listOpenPools({ pageSize, minAge, ...(after && { after }) });
      return pools.map(({ tenant, runId }) => ({ tenant, runId }));
    },
    async closePool(requestId, { tenant, runId }, mayWait = false) {
      await client.closePool({ requestId, tenant, runId, mayWait });
    },
    getPool: ({ tenant, runId }) => client.getPool({ tenant, runId }),
    async reprioritize(requestId, { tenant, runId, instance }, priority) {
      const request = { requestId, tenant, runId, agentInstance: instance, priority };
      const response = await client.reprioritize(request);
      const { changes } = response;
      return {
        response,
        paused: movedTo(changes, SlotState.PAUSED),
        resumed: movedTo(changes, SlotState.ACTIVE),
      };
    },
    close: () => client.close(),
  };
}

function movedTo(changes: readonly SlotChange[], state: SlotState): AgentRef[] {
  return changes.flatMap(({ agent, to }) =>
    to === state && agent !== undefined ? [{ name: agent.name, instance: agent.instance }] : [],
  );
}
