import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { InFlightCall } from '@writ/contracts/writ/control/v1/freeze_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Tab } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { Totals } from '@writ/contracts/writ/meter/v1/usage_pb';
import type { AgentKey } from '@writ/kernel';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { Halt } from '../domain/halt/halt.ts';
import { budgetFromJson, manifestFromJson } from '../domain/manifest/manifest-json.ts';
import type { ClosedTab } from '../domain/result/closed-tab.ts';
import { NO_USAGE, type RunUsage } from '../domain/result/run-usage.ts';
import type { AgentRow } from '../store/agent/agents.ts';
import { deadlineOf } from '../store/agent/deadline.ts';
import type { RunRow } from '../store/run/runs.ts';
import { budgetMessage } from '../wire/budget.ts';
import { type FreezeOrder, freezeMessage, haltFreezeMessage } from '../wire/freeze.ts';
import { agentRefOf, parentRefOf, priorityMessage, retentionMessage } from '../wire/supervision.ts';

/** Longer than the meter may wait for calls in flight. */
const FREEZE_TIMEOUT_MS = 35_000;
/** A halt is asked for again soon: who does not answer is named meanwhile. */
export const HALT_TIMEOUT_MS = 5_000;

/** The keeper of tabs, as orders need it: every call is idempotent, and they try again by themselves. */
export interface ExecutionMeterPeer {
  /** Opens an agent's tab; the root's carries the caps of the run. */
  openTab(requestId: string, run: RunRow, agent: AgentRow): Promise<void>;
  /** Refuses model calls of a scope from now on and aborts those in flight. */
  freeze(order: FreezeOrder): Promise<void>;
  /** Enforces a halt in its scope; returns the calls that had not ended after a short wait (SV-9). */
  halt(halt: Halt): Promise<readonly InFlightCall[]>;
  /** Lifts one order and no other; returns whether there was anything to lift. */
  unfreeze(orderId: string): Promise<boolean>;
  /**
   * Closes an agent's tab.
   * @throws NotFoundError when it never had one
   */
  closeTab(requestId: string, agent: AgentKey): Promise<ClosedTab>;
  close(): void;
}

/** Calls execution-meter over gRPC. */
export function createExecutionMeterPeer(options: RpcClientOptions): ExecutionMeterPeer {
  const client = createRpcClient(ExecutionMeterService, options);
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
        ...(parent === undefined && { runBudget: budgetMessage(budgetFromJson(run.run_budget)) }),
        models: JSON.parse(agent.models) as string[],
        priority: priorityMessage(agent.priority),
        ...(deadline && { deadline: timestampFromDate(deadline) }),
        ...(reserveTokens !== undefined && { reserveTokens: BigInt(reserveTokens) }),
        ...(reserveCostFraction !== undefined && { reserveCostFraction }),
        retention: retentionMessage(agent.retention),
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
      const { tab } = await client.closeTab({
        requestId,
        tab: { tenant, runId, agentInstance: instance },
      });
      return closedTab(tab);
    },
    close: () => client.close(),
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
    outputTokens: Number(totals.usage?.outputTokens ?? 0n),
    reasoningTokens: Number(totals.usage?.reasoningTokens ?? 0n),
    costNanoUsd: String(totals.costNanoUsd),
    turns: Number(totals.turns),
    estimatedTurns: Number(totals.estimatedTurns),
    failedCalls: Number(totals.failedCalls),
  };
}
