import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { PreconditionError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { admitAgent, callingAgent } from '../../app/agent/admit-agent.ts';
import { credentialsFor } from '../../app/agent/credentials.ts';
import type { SupervisorContext } from '../../context.ts';
import { haltedError } from '../../domain/halt/halt.ts';
import { haltOver } from '../../store/halt/halts.ts';
import { loadRun } from '../../store/run/runs.ts';

/** RefreshTokens: new tokens for an agent that is alive and not halted, also after its tokens expired. */
export function refreshTokens(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.refreshTokens> {
  return async (_request, call) => {
    const key = callingAgent(call);
    const { agent, run, halt } = await context.store.transaction(async (trx) => ({
      agent: await admitAgent(trx, call),
      run: await loadRun(trx, key),
      halt: await haltOver(trx, key),
    }));
    if (agent.ended_at !== null) {
      throw new PreconditionError(
        'RUN_ENDED',
        `Agent ${agent.instance} of run ${agent.run_id} has ended with ${agent.ending_stop_reason}.`,
        { run_id: agent.run_id, stop_reason: agent.ending_stop_reason ?? '' },
      );
    }
    if (halt !== undefined) throw haltedError(halt);
    return { credentials: await credentialsFor(context, run, agent) };
  };
}
