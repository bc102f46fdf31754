import { PreconditionError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { haltedError } from '../../domain/halt/halt.ts';
import type { Credentials } from '../../peers/agent-worker.ts';
import { haltCovering } from '../../store/halt/halts.ts';
import { loadRun } from '../../store/run/runs.ts';
import { admitAgent, callingAgent } from './admit-agent.ts';
import { credentialsFor } from './credentials.ts';

/**
 * Returns new tokens for the calling agent, which must not have ended or be halted (SUP-9).
 * @throws PreconditionError RUN_ENDED, HALTED; the errors of admitAgent
 */
export async function refreshTokens(
  context: SupervisorContext,
  call: CallContext,
): Promise<Credentials> {
  const key = callingAgent(call);
  const { agent, run, halt } = await context.store.transaction(
    async (trx) => ({
      agent: await admitAgent(trx, call),
      run: await loadRun(trx, key),
      halt: await haltCovering(trx, key),
    }),
    { run: key },
  );
  if (agent.ended_at !== null) {
    throw new PreconditionError(
      'RUN_ENDED',
      `Agent ${agent.instance} of run ${agent.run_id} has ended with ${agent.ending_stop_reason}.`,
      { run_id: agent.run_id, stop_reason: agent.ending_stop_reason ?? '' },
    );
  }
  if (halt !== undefined) throw haltedError(halt);
  return await credentialsFor(context, run, agent);
}
