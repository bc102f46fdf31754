import { durationMs, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type ExecutionMeterService,
  type OpenTabRequest,
  OpenTabRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { weightOf } from '@writ/identity';
import { AlreadyExistsError, InvalidRequestError, PreconditionError, Priority } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import { DIMENSIONS } from '../../domain/ledger/amount.ts';
import { DEFAULT_NEAR_BUDGET } from '../../domain/ledger/balance.ts';
import { dayOf } from '../../domain/ledger/calendar.ts';
import { ensureLevel, type LevelsKey, readLevels, setCaps } from '../../store/balances.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { findTab, insertTab, type Retention, type StoredTab } from '../../store/tabs.ts';
import { toCaps } from '../messages/budget.ts';
import { requestDigest } from '../messages/request-digest.ts';
import { requestIdReused } from '../messages/reused.ts';
import { tabMessage } from '../messages/tab.ts';
import type { RpcContext } from '../rpc-context.ts';

/**
 * Opens the tab of an agent in its run, session and tenant (EM-1). The tab of the root agent sets
 * the caps of the run, which are immutable.
 */
export function openTab(context: RpcContext): Handlers<typeof ExecutionMeterService>['openTab'] {
  const { store, clock } = context;
  return async (request) => {
    const tab = newTab(request, clock.now());
    return await store.transaction(async (trx) => {
      const known = await findTab(trx, tab);
      if (known !== undefined) {
        requireSameRequest(known, tab);
        return { tab: await tabMessage(context, trx, known) };
      }
      await insertTab(trx, tab);
      await openLevels(trx, { ...tab, day: dayOf(tab.openedAt) }, request);
      return { tab: await tabMessage(context, trx, tab) };
    });
  };
}

async function openLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  { budget, runBudget, sessionBudget }: OpenTabRequest,
): Promise<void> {
  const [, run] = await readLevels(trx, key, { day: {}, month: {} });
  await ensureLevel(trx, key, 'agent', toCaps(budget));
  await ensureLevel(trx, key, 'run', toCaps(runBudget));
  await ensureLevel(trx, key, 'session', toCaps(sessionBudget));
  if (runBudget !== undefined && run !== undefined) {
    const caps = toCaps(runBudget);
    const before = run.caps;
    const differs = DIMENSIONS.some((name) => before[name] !== caps[name]);
    if (differs && DIMENSIONS.some((name) => before[name] !== undefined)) {
      throw new PreconditionError(
        'RUN_BUDGET_ALREADY_SET',
        'run_budget differs from the caps of the run, which are set once by the tab of the root agent.',
        { field: 'run_budget' },
      );
    }
    if (differs) await setCaps(trx, key, 'run', caps);
  }
  // A tenant can change the caps of an active session.
  if (sessionBudget !== undefined) await setCaps(trx, key, 'session', toCaps(sessionBudget));
}

function newTab(request: OpenTabRequest, openedAt: Date): StoredTab {
  const { agent, parent, budget, deadline } = request;
  if (agent === undefined) {
    throw new InvalidRequestError('AGENT_REQUIRED', 'agent is required.', { field: 'agent' });
  }
  const ends = [
    ...(deadline === undefined ? [] : [timestampDate(deadline).getTime()]),
    ...(budget?.deadline === undefined ? [] : [openedAt.getTime() + durationMs(budget.deadline)]),
  ];
  return {
    tenant: request.tenant,
    runId: request.runId,
    agentInstance: agent.instance,
    agentName: agent.name,
    parent: parent && { name: parent.name, instance: parent.instance },
    sessionId: request.sessionId,
    state: 'open',
    models: request.models,
    priority: weightOf(request.priority) ?? Priority.NORMAL,
    deadline: ends.length === 0 ? undefined : new Date(Math.min(...ends)),
    near: {
      reserveTokens: request.reserveTokens ?? DEFAULT_NEAR_BUDGET.reserveTokens,
      reserveCostPpm:
        request.reserveCostFraction === undefined
          ? DEFAULT_NEAR_BUDGET.reserveCostPpm
          : BigInt(Math.round(request.reserveCostFraction * 1_000_000)),
    },
    retention: retentionOf(request),
    requestId: request.requestId,
    requestDigest: requestDigest(OpenTabRequestSchema, request),
    epoch: undefined,
    openedAt,
    closedAt: undefined,
  };
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

function requireSameRequest(known: StoredTab, asked: StoredTab): void {
  if (known.requestId !== asked.requestId) {
    throw new AlreadyExistsError(
      'TAB_EXISTS',
      `Agent ${asked.agentInstance} of run ${asked.runId} already has a tab.`,
      { run_id: asked.runId, agent_instance: asked.agentInstance },
    );
  }
  if (known.requestDigest !== asked.requestDigest) {
    throw requestIdReused();
  }
}
