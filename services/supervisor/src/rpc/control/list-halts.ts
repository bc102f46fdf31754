import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { haltingPerson } from '../../app/halt/order-halt.ts';
import type { SupervisorContext } from '../../context.ts';
import { listHalts as readHalts } from '../../store/halt/halts.ts';
import { haltMessage } from '../../wire/halt.ts';
import { pageTime, pageToken, readPageToken } from '../../wire/page-token.ts';

const DEFAULT_PAGE = 50;

/** ListHalts: the halts that affect the caller's tenant, newest first; an operator sees all (SV-9, SYS-6). */
export function listHalts(
  context: SupervisorContext,
): Handler<typeof ControlService.method.listHalts> {
  return async (request, call) => {
    const { tenant: own, isOperator } = haltingPerson(requirePerson(call));
    const { inForceOnly } = request;
    const tenant = isOperator ? undefined : own;
    const filters = { tenant: tenant ?? '', inForceOnly };
    const limit = request.pageSize === 0 ? DEFAULT_PAGE : request.pageSize;
    const [orderedAt = '', haltId = ''] = readPageToken(request.pageToken, filters, 2) ?? [];
    const after = haltId === '' ? undefined : { orderedAt: pageTime(orderedAt), haltId };
    const rows = await readHalts(context.store.db, {
      tenant,
      inForceOnly,
      after,
      limit: limit + 1,
    });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const nextPageToken =
      rows.length > limit && last !== undefined
        ? pageToken([last.ordered_at.toISOString(), last.halt_id], filters)
        : '';
    return { halts: page.map(haltMessage), nextPageToken };
  };
}
