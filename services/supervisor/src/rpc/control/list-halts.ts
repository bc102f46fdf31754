import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { listHalts as list } from '../../app/halt/list-halts.ts';
import { haltingPerson } from '../../app/halt/request-halt.ts';
import type { SupervisorContext } from '../../context.ts';
import { haltMessage } from '../../wire/halt.ts';
import { pageAt, readPage, readPageAt } from '../../wire/page-token.ts';

/** ListHalts: the halts that affect the caller's tenant, newest first; an operator sees all (SV-9, SYS-6). */
export function listHalts(
  context: SupervisorContext,
): Handler<typeof ControlService.method.listHalts> {
  return async (request, call) => {
    const { tenant: own, isOperator } = haltingPerson(requirePerson(call));
    const { inForceOnly } = request;
    const tenant = isOperator ? undefined : own;
    const { page, nextPageToken } = await readPage(request, {
      filters: { tenant: tenant ?? '', inForceOnly },
      parts: 2,
      read: (position, limit) => {
        const at = readPageAt(position);
        const after = at && { orderedAt: at.time, haltId: at.id };
        return list(context, { tenant, inForceOnly, after, limit });
      },
      positionOf: (row) => pageAt(row.ordered_at, row.halt_id),
    });
    return { halts: page.map(haltMessage), nextPageToken };
  };
}
