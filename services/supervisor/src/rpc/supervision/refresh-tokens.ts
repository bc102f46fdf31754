import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { PreconditionError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { loadRun } from '../../store/run/runs.ts';
import { credentialsFor } from '../messages/credentials.ts';
import { admitAgent, callingAgent } from './acting-agent.ts';

/** RefreshTokens: fresh tokens for an agent that lives, also when its old ones are over. */
export function refreshTokens(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.refreshTokens> {
  return async (_request, call) => {
    const { agent, run } = await context.store.transaction(async (trx) => ({
      agent: await admitAgent(trx, call),
      run: await loadRun(trx, callingAgent(call)),
    }));
    if (agent.ended_at !== null) {
      throw new PreconditionError(
        'RUN_ENDED',
        `Agent ${agent.instance} of run ${agent.run_id} has ended with ${agent.ending_stop_reason}.`,
        { run_id: agent.run_id, stop_reason: agent.ending_stop_reason ?? '' },
      );
    }
    return { credentials: await credentialsFor(context, run, agent) };
  };
}
