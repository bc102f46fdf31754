import type { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { testNotifications as send } from '../../app/notify/test-notifications.ts';
import type { SupervisorContext } from '../../context.ts';
import { sentNotification } from '../../wire/notification.ts';

/**
 * TestNotifications: sends a test message to every notification endpoint of a tenant, and reports the outcome of each
 * delivery (PE-2).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; InvalidRequestError REQUEST_ID_REUSED
 */
export function testNotifications(
  context: SupervisorContext,
): Handler<typeof ControlService.method.testNotifications> {
  return async (request, call) => {
    const rows = await send(context, requirePerson(call), request, call.signal);
    return { notifications: rows.map(sentNotification) };
  };
}
