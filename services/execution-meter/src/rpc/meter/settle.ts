import {
  type ExecutionMeterService,
  type SettleRequest,
  SettleRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { InvalidRequestError } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import { dayOf } from '../../domain/ledger/calendar.ts';
import type { Spending } from '../../domain/ledger/spending.ts';
import { requireTab } from '../../store/admit.ts';
import { book } from '../../store/book.ts';
import { type EntryId, findEntry } from '../../store/entries.ts';
import { requestDigest } from '../messages/request-digest.ts';
import { reservationMessage } from '../messages/reservation.ts';
import { callIdReused } from '../messages/reused.ts';
import { tabMessage } from '../messages/tab.ts';
import { agentKey } from '../messages/tab-key.ts';
import type { RpcContext } from '../rpc-context.ts';

/** Settles a reservation, also on a closed tab; usage above the reservation becomes debt (EM-3). */
export function settle(context: RpcContext): Handlers<typeof ExecutionMeterService>['settle'] {
  const { store, clock, catalog, events } = context;
  return async (request, call) => {
    const { callId, model } = request;
    const key = agentKey(request.tab);
    const id: EntryId = { kind: 'reserve', callId, attempt: 0 };
    const digest = requestDigest(SettleRequestSchema, request);
    const spent = spendingOf(request);
    return await store.transaction(async (trx) => {
      const at = clock.now();
      const tab = await requireTab(trx, key);
      const known = await findEntry(trx, key, id);
      const settledBy = known?.settleDigest;
      if (settledBy !== undefined && settledBy !== digest) throw callIdReused(callId);
      const { entry, exceeded, levels } = await book(trx, {
        tab,
        known: known ?? 'none',
        tenantCaps: catalog.tenantCaps(key.tenant),
        id,
        events: [{ type: 'settle', spent }],
        notes: { settleDigest: digest, ...(model !== '' && { model }) },
        at,
      });
      if (exceeded !== undefined) {
        const { traceparent } = call;
        const scope = { tab, callId, step: 0, model, attempt: 0, traceparent };
        await events.budgetExhausted({ trx, at }, scope, exceeded, 'settled');
      }
      return {
        reservation: reservationMessage(entry),
        // After midnight the settlement counts for the day of the reservation; the tab shows the current day.
        tab: await tabMessage(context, trx, tab, entry?.day === dayOf(at) ? levels : undefined),
      };
    });
  };
}

function spendingOf({ usage, costNanoUsd, turns, estimated }: SettleRequest): Spending {
  const {
    inputTokens: input = 0n,
    cachedInputTokens: cachedInput = 0n,
    outputTokens: output = 0n,
    reasoningTokens: reasoning = 0n,
  } = usage ?? {};
  for (const [field, tokens] of Object.entries({ input, cachedInput, output, reasoning })) {
    if (tokens >= 0n && tokens <= MAX_TOKENS) continue;
    throw new InvalidRequestError(
      'INVALID_USAGE',
      `usage.${field === 'cachedInput' ? 'cached_input' : field}_tokens must be from 0 to ${MAX_TOKENS}.`,
      { field: 'usage' },
    );
  }
  const isPart = cachedInput <= input && reasoning <= output;
  if (!isPart) {
    throw new InvalidRequestError(
      'INVALID_USAGE',
      'usage.cached_input_tokens must not exceed input_tokens, and usage.reasoning_tokens must not exceed output_tokens.',
      { field: 'usage' },
    );
  }
  const tokens = { input, cachedInput, output, reasoning };
  return { usage: tokens, cost: costNanoUsd, turns, estimated, failed: false };
}

/** The limit of token fields in other requests. */
const MAX_TOKENS = 1_000_000_000_000n;
