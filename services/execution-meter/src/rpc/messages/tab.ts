import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  BudgetLevel,
  type LevelBalanceSchema,
  type TabSchema,
  TabState,
} from '@writ/contracts/writ/meter/v1/tab_pb';
import type { TotalsSchema, UsageSchema } from '@writ/contracts/writ/meter/v1/usage_pb';
import type { MeterContext } from '../../context.ts';
import { type Balance, isNearBudget, type Level } from '../../domain/ledger/balance.ts';
import { dayOf } from '../../domain/ledger/calendar.ts';
import type { TokenUsage } from '../../domain/ledger/spending.ts';
import { readLevels } from '../../store/balances.ts';
import { failuresOf } from '../../store/failures.ts';
import type { MeterReader } from '../../store/meter-store.ts';
import type { StoredTab } from '../../store/tabs.ts';
import { fromCaps } from './budget.ts';

const LEVELS: Readonly<Record<Level, BudgetLevel>> = {
  agent: BudgetLevel.AGENT,
  run: BudgetLevel.RUN,
  session: BudgetLevel.SESSION,
  tenant_day: BudgetLevel.TENANT_DAY,
  tenant_month: BudgetLevel.TENANT_MONTH,
};

/**
 * Returns a tab with its current balances, read from `db`.
 * @param known its current levels, if already read
 */
export async function tabMessage(
  { clock, catalog }: Pick<MeterContext, 'clock' | 'catalog'>,
  db: MeterReader,
  tab: StoredTab,
  known?: readonly Balance[],
): Promise<MessageInitShape<typeof TabSchema>> {
  const key = { ...tab, day: dayOf(clock.now()) };
  const levels = known ?? (await readLevels(db, key, catalog.tenantCaps(tab.tenant)));
  const failures = await failuresOf(db, tab);
  const [agent, run] = levels;
  return {
    tenant: tab.tenant,
    runId: tab.runId,
    sessionId: tab.sessionId,
    agent: { name: tab.agentName, instance: tab.agentInstance },
    state: tab.state === 'open' ? TabState.OPEN : TabState.CLOSED,
    levels: levels.map((balance) => levelMessage(balance, tab)),
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
    outputTokens: usage.output,
    reasoningTokens: usage.reasoning,
  };
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

function levelMessage(
  balance: Balance,
  { near }: StoredTab,
): MessageInitShape<typeof LevelBalanceSchema> {
  const { level, caps, used, reserved, debt } = balance;
  return {
    level: LEVELS[level],
    limit: fromCaps(caps),
    usedTokens: used.tokens,
    reservedTokens: reserved.tokens,
    usedCostNanoUsd: used.cost,
    reservedCostNanoUsd: reserved.cost,
    usedTurns: used.turns,
    reservedTurns: reserved.turns,
    debtTokens: debt.tokens,
    debtCostNanoUsd: debt.cost,
    nearBudget: isNearBudget(balance, near),
  };
}
