import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type ExecutionMeterService,
  ReserveRequestSchema,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import type { Handlers } from '@writ/rpc';
import { breachError } from '../../domain/ledger/breach-error.ts';
import { roomOf } from '../../domain/ledger/room.ts';
import { NO_USAGE } from '../../domain/ledger/spending.ts';
import { requireSpendable, requireTab } from '../../store/admit.ts';
import { book } from '../../store/book.ts';
import { type EntryId, findEntry } from '../../store/entries.ts';
import { requestDigest } from '../messages/request-digest.ts';
import { reservationMessage } from '../messages/reservation.ts';
import { callIdReused } from '../messages/reused.ts';
import { agentKey } from '../messages/tab-key.ts';
import type { RpcContext } from '../rpc-context.ts';

const DEFAULT_TTL_MS = 60_000;

/** Reserves budget on every level, or fails with the first cap that it exceeds (EM-3). */
export function reserve(context: RpcContext): Handlers<typeof ExecutionMeterService>['reserve'] {
  const { store, clock, catalog, events } = context;
  return async (request, call) => {
    const { callId, tokens, costNanoUsd, turns, ttl } = request;
    const key = agentKey(request.tab);
    const id: EntryId = { kind: 'reserve', callId, attempt: 0 };
    const digest = requestDigest(ReserveRequestSchema, request);
    const { entry, refusal, levels } = await store.transaction(async (trx) => {
      const at = clock.now();
      const tab = await requireTab(trx, key);
      const known = await findEntry(trx, key, id);
      if (known !== undefined) {
        if (known.requestDigest !== digest) throw callIdReused(callId);
        return { entry: known, refusal: undefined, levels: [] };
      }
      await requireSpendable(trx, tab, at);
      const ttlMs = ttl === undefined ? DEFAULT_TTL_MS : durationMs(ttl);
      const booked = await book(trx, {
        tab,
        tenantCaps: catalog.tenantCaps(key.tenant),
        id,
        known: 'none',
        events: [
          {
            type: 'reserve',
            kind: 'reserve',
            hold: { usage: { ...NO_USAGE, input: tokens }, cost: costNanoUsd, turns },
          },
        ],
        notes: { requestDigest: digest, expiresAt: new Date(at.getTime() + ttlMs) },
        at,
      });
      if (booked.refusal !== undefined) {
        const { traceparent } = call;
        const scope = { tab, callId, step: 0, model: '', attempt: 0, traceparent };
        await events.budgetExhausted({ trx, at }, scope, booked.refusal, 'refused');
      }
      return { refusal: undefined, ...booked };
    });
    if (refusal === undefined) return { reservation: reservationMessage(entry) };
    const room = roomOf(levels);
    throw breachError(refusal, {
      call_id: callId,
      ...(room.tokens === undefined ? {} : { fits_tokens: String(room.tokens) }),
      ...(room.cost === undefined ? {} : { fits_cost_nano_usd: String(room.cost) }),
      ...(room.turns === undefined ? {} : { fits_turns: String(room.turns) }),
    });
  };
}
