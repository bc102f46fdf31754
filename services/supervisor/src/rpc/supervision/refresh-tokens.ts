import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Handler } from '@writ/rpc';
import { refreshTokens as refresh } from '../../app/agent/refresh-tokens.ts';
import type { SupervisorContext } from '../../context.ts';

/** RefreshTokens: issues new tokens for an agent that is alive and not halted, even after its tokens have expired. */
export function refreshTokens(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.refreshTokens> {
  return async (_request, call) => ({ credentials: await refresh(context, call) });
}
