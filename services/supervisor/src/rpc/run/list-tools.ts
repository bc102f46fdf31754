import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { listTools as list } from '../../app/run/list-tools.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * ListTools: lists the tools that the gateway offers to the caller's tenant, sorted by name (TG-6).
 * @throws InvalidRequestError INVALID_PAGE_TOKEN; what the gateway throws
 */
export function listTools(context: SupervisorContext): Handler<typeof RunService.method.listTools> {
  return async (request, call) => await list(context, requirePerson(call).tenant, request);
}
