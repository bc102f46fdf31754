import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { InFlightCall } from '@writ/contracts/writ/control/v1/freeze_pb';
import {
  ExecutionMeterService,
  type GetBalancesResponse,
  type GetTabResponse,
  type QueryUsageRequestSchema,
  type QueryUsageResponse,
  type SetCapsRequestSchema,
  type SetCapsResponse,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { type Tab, TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { Totals } from '@writ/contracts/writ/meter/v1/usage_pb';
import {
  type ListModelsResponse,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import type { AgentKey } from '@writ/kernel';
import { omitUndefined } from '@writ/kernel';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { Halt } from '../domain/halt/halt.ts';
import { budgetFromJson, manifestFromJson } from '../domain/manifest/manifest-json.ts';
import type { ClosedTab } from '../domain/result/closed-tab.ts';
import { NO_USAGE, type RunUsage } from '../domain/result/run-usage.ts';
import type { AgentRow } from '../store/agent/agents.ts';
import { deadlineOf } from '../store/agent/deadline.ts';
import type { RunRow } from '../store/run/runs.ts';
import { budgetMessage } from '../wire/budget.ts';
import { type EndFreeze, freezeMessage, haltFreezeMessage } from '../wire/freeze.ts';
import { agentRefOf, parentRefOf, priorityMessage, retentionMessage } from '../wire/supervision.ts';
import type { OpenPage } from './open-page.ts';

/** Longer than the meter and the gateway wait for calls in flight. */
export const FREEZE_TIMEOUT_MS = 35_000;
/** Short, because halts are retried and a service that does not answer is reported. */
export const HALT_TIMEOUT_MS = 5_000;

/** A closed tab with the encoded events of the last calls of its agent. */
export interface CloseTabResult {
  readonly tab: ClosedTab;
  readonly events: readonly Uint8Array[];
}

/**
 * Client of execution-meter. Every call is idempotent. The order engine repeats the calls of orders; the client retries
 * no call.
 */
export interface ExecutionMeterPeer {
  /** Opens an agent's tab; the root's tab has the caps of the run. */
  openTab(requestId: string, run: RunRow, agent: AgentRow): Promise<void>;
  /** Rejects model calls of a scope from now on and aborts those in flight. */
  freeze(order: EndFreeze): Promise<void>;
  /** Enforces a halt in its scope; returns the calls still in flight after a short wait (SV-9). */
  halt(halt: Halt): Promise<readonly InFlightCall[]>;
  /** Lifts one freeze order and no other; returns false when there was none. */
  unfreeze(orderId: string): Promise<boolean>;
  /**
   * Closes an agent's tab; returns it with the encoded events of its last calls.
   * @throws NotFoundError TAB_NOT_FOUND
   */
  closeTab(requestId: string, agent: AgentKey): Promise<CloseTabResult>;
  /**
   * Closes an agent's tab, unless the tab has an open reservation or a call in flight; returns undefined if the tab
   * stays open.
   */
  closeSettledTab(requestId: string, agent: AgentKey): Promise<CloseTabResult | undefined>;
  /** Returns a page of the agents with an open tab, by tenant, run and agent (BD-3). */
  openTabs(page: OpenPage<AgentKey>): Promise<AgentKey[]>;
  /**
   * Returns an agent's tab with the balances of all levels.
   * @throws NotFoundError TAB_NOT_FOUND
   */
  getTab(agent: AgentKey): Promise<GetTabResponse>;
  /** Returns the balances of a session, if one is named, and of a tenant (EM-10). */
  getBalances(tenant: string, sessionId: string): Promise<GetBalancesResponse>;
  /** Sums settled usage (EM-10). */
  queryUsage(query: MessageInitShape<typeof QueryUsageRequestSchema>): Promise<QueryUsageResponse>;
  /** Sets the caps of a run, a session or a tenant; a repeat changes nothing (EM-3). */
  setCaps(change: MessageInitShape<typeof SetCapsRequestSchema>): Promise<SetCapsResponse>;
  /** Returns the usable aliases of the catalog. */
  listModels(): Promise<ListModelsResponse>;
  close(): void;
}

/** Creates the gRPC client of execution-meter. */
export function createExecutionMeterPeer(options: RpcClientOptions): ExecutionMeterPeer {
  const client = createRpcClient(ExecutionMeterService, options);
  const models = createRpcClient(ModelService, options);
  return {
    async openTab(requestId, run, agent) {
      const { reserveTokens, reserveCostFraction } = manifestFromJson(agent.manifest).guardrails;
      const parent = parentRefOf(agent);
      const deadline = deadlineOf(run, agent);
      await client.openTab({
        requestId,
        tenant: run.tenant,
        runId: run.run_id,
        sessionId: run.session_id,
        agent: agentRefOf(agent),
        ...(parent && { parent }),
        budget: budgetMessage(budgetFromJson(agent.execution_budget)),
        ...(parent === undefined && capsOfRun(run)),
        models: JSON.parse(agent.models) as string[],
        priority: priorityMessage(agent.priority),
        ...(deadline && { deadline: timestampFromDate(deadline) }),
        ...(reserveTokens !== undefined && { reserveTokens: BigInt(reserveTokens) }),
        ...omitUndefined({ reserveCostFraction }),
        retention: retentionMessage(agent.retention),
        eventKey: new Uint8Array(Buffer.from(run.event_key, 'hex')),
      });
    },
    async freeze(order) {
      await client.freeze({ order: freezeMessage(order) }, { timeoutMs: FREEZE_TIMEOUT_MS });
    },
    async halt(halt) {
      const order = haltFreezeMessage(halt);
      return (await client.freeze({ order }, { timeoutMs: HALT_TIMEOUT_MS })).inFlight;
    },
    async unfreeze(orderId) {
      return (await client.unfreeze({ orderId }, { timeoutMs: HALT_TIMEOUT_MS })).lifted;
    },
    async closeTab(requestId, { tenant, runId, instance }) {
      const { tab, events } = await client.closeTab({
        requestId,
        tab: { tenant, runId, agentInstance: instance },
      });
      return { tab: closedTab(tab), events };
    },
    async closeSettledTab(requestId, { tenant, runId, instance }) {
      const { tab, events } = await client.closeTab({
        requestId,
        tab: { tenant, runId, agentInstance: instance },
        onlyIfSettled: true,
      });
      return tab?.state === TabState.CLOSED ? { tab: closedTab(tab), events } : undefined;
    },
    async openTabs({ after, limit: pageSize, minAgeMs }) {
      const { tabs } = await client.listOpenTabs({
        pageSize,
        minAge: durationFromMs(minAgeMs),
        ...(after && {
          after: { tenant: after.tenant, runId: after.runId, agentInstance: after.instance },
        }),
      });
      return tabs.map(({ tenant, runId, agentInstance }) => ({
        tenant,
        runId,
        instance: agentInstance,
      }));
    },
    getTab: ({ tenant, runId, instance }) =>
      client.getTab({ tab: { tenant, runId, agentInstance: instance } }),
    getBalances: (tenant, sessionId) => client.getBalances({ tenant, sessionId }),
    queryUsage: (query) => client.queryUsage(query),
    setCaps: (change) => client.setCaps(change),
    listModels: () => models.listModels({}),
    close() {
      client.close();
      models.close();
    },
  };
}

/** The caps that the root's tab sets for the run and its session. */
function capsOfRun({ run_budget, session_budget }: RunRow) {
  return {
    runBudget: budgetMessage(budgetFromJson(run_budget)),
    ...(session_budget !== null && {
      sessionBudget: budgetMessage(budgetFromJson(session_budget)),
    }),
  };
}

function closedTab(tab: Tab | undefined): ClosedTab {
  return {
    usage: usageOf(tab?.totals),
    runUsage: usageOf(tab?.runTotals),
    failures: (tab?.failures ?? []).map(({ stopReason, count, lastCallId }) => ({
      stopReason,
      count: Number(count),
      lastCallId,
    })),
  };
}

function usageOf(totals: Totals | undefined): RunUsage {
  if (totals === undefined) return NO_USAGE;
  return {
    inputTokens: Number(totals.usage?.inputTokens ?? 0n),
    cachedInputTokens: Number(totals.usage?.cachedInputTokens ?? 0n),
    cacheWriteInputTokens: Number(totals.usage?.cacheWriteInputTokens ?? 0n),
    outputTokens: Number(totals.usage?.outputTokens ?? 0n),
    reasoningTokens: Number(totals.usage?.reasoningTokens ?? 0n),
    costNanoUsd: String(totals.costNanoUsd),
    turns: Number(totals.turns),
    estimatedTurns: Number(totals.estimatedTurns),
    failedCalls: Number(totals.failedCalls),
  };
}
