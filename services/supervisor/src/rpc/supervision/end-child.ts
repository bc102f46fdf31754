import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Handler } from '@writ/rpc';
import { endChild as endChildOf } from '../../app/agent/end-child.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * EndChild: ends a child of the calling agent, and answers when its slot is released. The first ending of a child is
 * final; a repeated call changes nothing (SB-3, RT-4).
 */
export function endChild(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.endChild> {
  return async (request, call) => await endChildOf(context, request, call);
}
