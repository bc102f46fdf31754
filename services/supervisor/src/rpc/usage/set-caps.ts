import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { setCaps as set } from '../../app/usage/set-caps.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * SetCaps: sets the caps of a run, a session or a tenant at run time (EM-3).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError REQUEST_ID_REUSED, INVALID_BUDGET; NotFoundError
 *   RUN_NOT_FOUND; PreconditionError RUN_ENDED; UnavailableError AGENT_NOT_DELIVERED; what the meter throws
 */
export function setCaps(context: SupervisorContext): Handler<typeof UsageService.method.setCaps> {
  return async (request, call) => {
    const balance = await set(context, requirePerson(call), request);
    return { ...(balance && { balance }) };
  };
}
