import {
  type ConsumeRequest,
  ConsumeRequestSchema,
  type ExecutionMeterService,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { exceededCap } from '../../domain/ledger/balance.ts';
import { breachError } from '../../domain/ledger/breach-error.ts';
import { dayOf } from '../../domain/ledger/calendar.ts';
import { NO_USAGE, type Spending } from '../../domain/ledger/spending.ts';
import { requireTab } from '../../store/admit.ts';
import { readLevels } from '../../store/balances.ts';
import { book } from '../../store/book.ts';
import { type EntryId, findEntry } from '../../store/entries.ts';
import { requestDigest } from '../messages/request-digest.ts';
import { requestIdReused } from '../messages/reused.ts';
import { tabMessage } from '../messages/tab.ts';
import { agentKey } from '../messages/tab-key.ts';
import type { RpcContext } from '../rpc-context.ts';

/** Books external spending, then checks the caps: tokens, cost, turns (EM-2). */
export function consume(context: RpcContext): Handlers<typeof ExecutionMeterService>['consume'] {
  const { store, clock, catalog, events } = context;
  return async (request, call) => {
    const key = agentKey(request.tab);
    const id: EntryId = { kind: 'consume', callId: request.requestId, attempt: 0 };
    const digest = requestDigest(ConsumeRequestSchema, request);
    const { tab, breach } = await store.transaction(async (trx) => {
      const at = clock.now();
      const tab = await requireTab(trx, key);
      const tenantCaps = catalog.tenantCaps(key.tenant);
      const known = await findEntry(trx, key, id);
      if (known !== undefined) {
        if (known.requestDigest !== digest) throw requestIdReused();
        const levels = await readLevels(trx, { ...tab, day: dayOf(at) }, tenantCaps);
        return { tab: await tabMessage(context, trx, tab), breach: exceededCap(levels) };
      }
      const booked = await book(trx, {
        tab,
        tenantCaps,
        id,
        known: 'none',
        events: [{ type: 'consume', spent: spendingOf(request) }],
        notes: { requestDigest: digest },
        at,
      });
      const breach = exceededCap(booked.levels);
      if (breach !== undefined) {
        const { traceparent } = call;
        const scope = {
          tab,
          callId: request.requestId,
          step: 0,
          model: '',
          attempt: 0,
          traceparent,
        };
        await events.budgetExhausted({ trx, at }, scope, breach, 'settled');
      }
      return { tab: await tabMessage(context, trx, tab), breach };
    });
    // The booking is committed even when a cap is exceeded.
    if (breach !== undefined) throw breachError(breach);
    return { tab };
  };
}

/** Consume does not report the kind of tokens; they are booked as input. */
function spendingOf({ tokens, costNanoUsd, turns }: ConsumeRequest): Spending {
  const usage = { ...NO_USAGE, input: tokens };
  return { usage, cost: costNanoUsd, turns, estimated: false, failed: false };
}
