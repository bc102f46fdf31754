import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { awaitHalt } from '../../app/halt/await-halt.ts';
import { haltPending, orderHalt } from '../../app/halt/request-halt.ts';
import type { SupervisorContext } from '../../context.ts';
import { haltDigest, haltMessage, scopeFrom } from '../../wire/halt.ts';

/**
 * Halt: orders a halt. The supervisor rejects reviews, approvals and starts of runs in the scope as soon as the
 * transaction commits; the call returns when the meter and the gateway also reject model and tool calls. If one of
 * these services does not answer, the halt stays PENDING: the supervisor enforces the halt and keeps retrying the
 * service, and a repeated call waits again (SV-9).
 * @throws UnavailableError HALT_PENDING naming the services that did not answer; PermissionDeniedError
 *   OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; InvalidRequestError REQUEST_ID_REUSED
 */
export function halt(context: SupervisorContext): Handler<typeof ControlService.method.halt> {
  return async (request, call) => {
    const { requestId, reason, endRuns } = request;
    const scope = scopeFrom(request.scope);
    const digest = haltDigest(request);
    const person = requirePerson(call);
    const haltId = await orderHalt(context, person, { requestId, digest, scope, reason, endRuns });
    const row = await awaitHalt(context, haltId, call, ({ state }) => state !== 'pending');
    if (row.state === 'pending') throw haltPending(row);
    return { halt: haltMessage(row) };
  };
}
