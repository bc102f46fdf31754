import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationMs, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type {
  OpenTabRequest,
  TabKey,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import {
  BudgetLevel,
  type LevelBalanceSchema,
  type TabSchema,
  TabState,
} from '@writ/contracts/writ/meter/v1/tab_pb';
import type { TotalsSchema, UsageSchema } from '@writ/contracts/writ/meter/v1/usage_pb';
import {
  type ExecutionBudget,
  HistoryRetention,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { weightOf } from '@writ/identity';
import { type AgentKey, InvalidRequestError, omitUndefined, Priority } from '@writ/kernel';
import type { Caps } from '../domain/ledger/amount.ts';
import { type Balance, type Level, remainingBudget } from '../domain/ledger/balance.ts';
import {
  DEFAULT_NEAR_BUDGET,
  isNearBudget,
  type NearBudget,
} from '../domain/ledger/near-budget.ts';
import { NO_USAGE, type TokenUsage } from '../domain/ledger/spending.ts';
import type { FailureCount } from '../store/failures.ts';
import type { Retention, StoredTab } from '../store/tabs.ts';

/** The contract's enum value of each level. */
export const LEVELS: Readonly<Record<Level, BudgetLevel>> = {
  agent: BudgetLevel.AGENT,
  run: BudgetLevel.RUN,
  session: BudgetLevel.SESSION,
  tenant_day: BudgetLevel.TENANT_DAY,
  tenant_month: BudgetLevel.TENANT_MONTH,
};

/**
 * Returns the key of a tab. Request validation ensures that `tab` is present, except in GetTab.
 * @throws InvalidRequestError TAB_REQUIRED
 */
export function agentKey(tab: TabKey | undefined): AgentKey {
  if (tab !== undefined) {
    const { tenant, runId, agentInstance } = tab;
    return { tenant, runId, instance: agentInstance };
  }
  throw new InvalidRequestError('TAB_REQUIRED', 'tab is required.', { field: 'tab' });
}

/** Converts a token count that does not distinguish input and output to usage; all tokens count as input. */
export function undividedUsage(tokens: bigint): TokenUsage {
  return { ...NO_USAGE, input: tokens };
}

/**
 * Converts an OpenTabRequest to a tab with the caps of its levels.
 * @throws InvalidRequestError AGENT_REQUIRED, which request validation prevents
 */
export function readNewTab(
  request: OpenTabRequest,
  requestDigest: string,
  openedAt: Date,
): {
  readonly tab: StoredTab;
  readonly caps: Caps;
  readonly runCaps: Caps | undefined;
  readonly sessionCaps: Caps | undefined;
} {
  const { agent, parent, budget, runBudget, sessionBudget, reserveTokens } = request;
  if (agent === undefined) {
    throw new InvalidRequestError('AGENT_REQUIRED', 'agent is required.', { field: 'agent' });
  }
  const tab: StoredTab = {
    tenant: request.tenant,
    runId: request.runId,
    instance: agent.instance,
    agentName: agent.name,
    parent: parent && { name: parent.name, instance: parent.instance },
    sessionId: request.sessionId,
    state: 'open',
    models: request.models,
    priority: weightOf(request.priority) ?? Priority.NORMAL,
    deadline: deadlineOf(request, openedAt),
    near: {
      reserveTokens: reserveTokens ?? DEFAULT_NEAR_BUDGET.reserveTokens,
      reserveCostPpm:
        request.reserveCostFraction === undefined
          ? DEFAULT_NEAR_BUDGET.reserveCostPpm
          : BigInt(Math.round(request.reserveCostFraction * 1_000_000)),
    },
    retention: retentionOf(request),
    requestId: request.requestId,
    requestDigest,
    eventKey: Buffer.from(request.eventKey).toString('hex'),
    epoch: undefined,
    openedAt,
    closedAt: undefined,
  };
  return {
    tab,
    caps: toCaps(budget),
    runCaps: runBudget && toCaps(runBudget),
    sessionCaps: sessionBudget && toCaps(sessionBudget),
  };
}

/** Converts a tab with its balances and failures to a Tab message. */
export function tabMessage({
  tab,
  levels,
  failures,
}: {
  readonly tab: StoredTab;
  readonly levels: readonly Balance[];
  readonly failures: readonly FailureCount[];
}): MessageInitShape<typeof TabSchema> {
  const [agent, run] = levels;
  return {
    tenant: tab.tenant,
    runId: tab.runId,
    sessionId: tab.sessionId,
    agent: { name: tab.agentName, instance: tab.instance },
    state: tab.state === 'open' ? TabState.OPEN : TabState.CLOSED,
    levels: levels.map((balance) => levelMessage(balance, tab.near)),
    ...(agent && { totals: totalsMessage(agent) }),
    ...(run && { runTotals: totalsMessage(run) }),
    failures: failures.map(({ stopReason, count, lastCallId }) => ({
      stopReason,
      count: BigInt(count),
      lastCallId,
    })),
    models: [...tab.models],
    createTime: timestampFromDate(tab.openedAt),
    ...(tab.closedAt && { closeTime: timestampFromDate(tab.closedAt) }),
  };
}

/** Converts token counts to a Usage message. */
export function usageMessage(usage: TokenUsage): MessageInitShape<typeof UsageSchema> {
  return {
    inputTokens: usage.input,
    cachedInputTokens: usage.cachedInput,
    cacheWriteInputTokens: usage.cacheWrite,
    outputTokens: usage.output,
    reasoningTokens: usage.reasoning,
  };
}

/** Converts a budget to the caps that the meter enforces. The supervisor enforces active time. */
export function toCaps(budget: ExecutionBudget | undefined): Caps {
  const { maxTokens: tokens, maxCostNanoUsd: cost, maxTurns: turns } = budget ?? {};
  return omitUndefined({ tokens, cost, turns });
}

function deadlineOf({ deadline, budget }: OpenTabRequest, openedAt: Date): Date | undefined {
  const ends = [
    ...(deadline === undefined ? [] : [timestampDate(deadline).getTime()]),
    ...(budget?.deadline === undefined ? [] : [openedAt.getTime() + durationMs(budget.deadline)]),
  ];
  return ends.length === 0 ? undefined : new Date(Math.min(...ends));
}

function retentionOf({ retention, parent }: OpenTabRequest): Retention {
  switch (retention) {
    case HistoryRetention.NONE:
      return 'none';
    case HistoryRetention.RUN:
      return 'run';
    case HistoryRetention.PERMANENT:
      return 'permanent';
    case HistoryRetention.UNSPECIFIED:
      break;
  }
  return parent === undefined ? 'permanent' : 'run';
}

function totalsMessage(balance: Balance): MessageInitShape<typeof TotalsSchema> {
  return {
    usage: usageMessage(balance.usage),
    costNanoUsd: balance.used.cost,
    turns: balance.used.turns,
    estimatedTurns: balance.estimatedTurns,
    failedCalls: balance.failedCalls,
  };
}

/**
 * Converts the balance of one level to a LevelBalance message; `near` has the thresholds at which the budget is nearly
 * exhausted.
 */
export function levelMessage(
  balance: Balance,
  near: NearBudget = DEFAULT_NEAR_BUDGET,
): MessageInitShape<typeof LevelBalanceSchema> {
  const { level, caps, used, reserved, debt } = balance;
  const { tokens: maxTokens, cost: maxCostNanoUsd, turns: maxTurns } = caps;
  const remaining = remainingBudget([balance]);
  return {
    level: LEVELS[level],
    limit: omitUndefined({ maxTokens, maxCostNanoUsd, maxTurns }),
    usedTokens: used.tokens,
    reservedTokens: reserved.tokens,
    usedCostNanoUsd: used.cost,
    reservedCostNanoUsd: reserved.cost,
    usedTurns: used.turns,
    reservedTurns: reserved.turns,
    debtTokens: debt.tokens,
    debtCostNanoUsd: debt.cost,
    nearBudget: isNearBudget(balance, near),
    ...omitUndefined({
      remainingTokens: remaining.tokens,
      remainingCostNanoUsd: remaining.cost,
      remainingTurns: remaining.turns,
      capsSetBy: balance.capsSetBy,
    }),
  };
}
