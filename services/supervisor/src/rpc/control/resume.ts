import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { awaitHalt } from '../../app/halt/await-halt.ts';
import { liftHalt, resumePending } from '../../app/halt/request-halt.ts';
import type { SupervisorContext } from '../../context.ts';
import { haltMessage } from '../../wire/halt.ts';

/**
 * Resume: lifts one halt, and no other halt of the same scope; answers when it is lifted in all services. A lifted
 * halt stays lifted (SV-9).
 * @throws NotFoundError HALT_NOT_FOUND; PermissionDeniedError OPERATOR_REQUIRED; UnavailableError RESUME_PENDING;
 *   InvalidRequestError REQUEST_ID_REUSED
 */
export function resume(context: SupervisorContext): Handler<typeof ControlService.method.resume> {
  return async ({ requestId, haltId }, call) => {
    await liftHalt(context, requirePerson(call), { requestId, haltId });
    const row = await awaitHalt(context, haltId, call, ({ state }) => state === 'lifted');
    if (row.state !== 'lifted') throw resumePending(row);
    return { halt: haltMessage(row) };
  };
}
