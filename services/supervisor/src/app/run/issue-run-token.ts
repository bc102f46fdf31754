import { PreconditionError, type RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import type { SupervisorReader } from '../../store/supervisor-store.ts';
import { rootRefOf } from '../../wire/supervision.ts';
import { rootKeyOf } from './start-run-order.ts';

const DEFAULT_LIFETIME_MS = 60 * 60_000;

/** A run token with its expiry. */
export interface RunToken {
  readonly token: string;
  readonly expireTime: Date;
}

/**
 * Issues a token with which a program acts as the external agent of a run, at agent-proxy only (AP-1). The token never
 * outlives the deadline of the run. The end of the run, a halt and a freeze take effect at once, because the state of
 * the run is checked for each request.
 * @throws NotFoundError RUN_NOT_FOUND; PreconditionError RUN_NOT_EXTERNAL, RUN_ENDED
 */
export async function issueRunToken(
  { store, signer, clock }: Pick<SupervisorContext, 'store' | 'signer' | 'clock'>,
  key: RunKey,
  lifetimeMs: number = DEFAULT_LIFETIME_MS,
): Promise<RunToken> {
  const run = await loadExternalRun(store.db, key);
  const leftMs = (run.deadline_at?.getTime() ?? Infinity) - clock.now().getTime();
  if (run.ended_at !== null || run.state === 'ENDING' || leftMs <= 0) {
    throw new PreconditionError('RUN_ENDED', `Run ${run.run_id} has ended; start a new run.`, {
      run_id: run.run_id,
    });
  }
  const { tenant, run_id: runId } = run;
  return await signer.sign('run_token', {
    audience: 'agent-proxy',
    claims: { tenant, runId, agent: rootRefOf(run) },
    ttlMs: Math.min(lifetimeMs, leftMs),
  });
}

/**
 * Returns a run whose root is an external agent.
 * @throws NotFoundError RUN_NOT_FOUND; PreconditionError RUN_NOT_EXTERNAL
 */
export async function loadExternalRun(db: SupervisorReader, key: RunKey): Promise<RunRow> {
  const run = await loadRun(db, key);
  const { kind } = manifestFromJson((await loadAgent(db, rootKeyOf(run))).manifest);
  if (kind === 'external') return run;
  throw new PreconditionError(
    'RUN_NOT_EXTERNAL',
    `The root of run ${run.run_id} is an agent of kind ${kind}, not external; run tokens and CloseRun require an external agent.`,
    { run_id: run.run_id },
  );
}
