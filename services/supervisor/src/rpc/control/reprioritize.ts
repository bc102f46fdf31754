import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { reprioritize as change } from '../../app/agent/reprioritize.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * Reprioritize: changes the priority of a live agent, which may pause or resume agents of its run (SB-5).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; PreconditionError
 *   RUN_ENDED; UnavailableError AGENT_NOT_DELIVERED; InvalidRequestError REQUEST_ID_REUSED; what spawn-budget throws
 */
export function reprioritize(
  context: SupervisorContext,
): Handler<typeof ControlService.method.reprioritize> {
  return async (request, call) => {
    const { slot, changes } = await change(context, requirePerson(call), request);
    return { ...(slot && { slot: { ...slot, grant: '' } }), changes };
  };
}
