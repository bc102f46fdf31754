import type { MessageInitShape } from '@bufbuild/protobuf';
import type { WritClient } from '@writ/client';
import type { ScopeSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import { InvalidRequestError } from '@writ/kernel';

/** What a command line says about what to stop. */
export interface ScopeOptions {
  readonly run?: string;
  readonly agent?: string;
  readonly tenant?: string;
  readonly everything?: boolean;
}

/**
 * The scope that the options name; a run's tenant is asked for when they do not say it.
 * @throws InvalidRequestError INVALID_SCOPE when they name none, or more than one
 */
export async function scopeFrom(
  { run, agent, tenant, everything = false }: ScopeOptions,
  door: Pick<WritClient, 'runs'>,
): Promise<MessageInitShape<typeof ScopeSchema>> {
  if (everything && (run ?? agent ?? tenant) !== undefined) {
    throw badScope('--everything goes with no other scope.');
  }
  if (everything) return { kind: { case: 'everything', value: {} } };
  if (run === undefined) {
    if (agent !== undefined) throw badScope('--agent needs --run, the run that it is of.');
    if (tenant !== undefined) return { kind: { case: 'tenant', value: tenant } };
    throw badScope('Say what to halt: --run, --run with --agent, --tenant or --everything.');
  }
  const value = { tenant: tenant ?? (await tenantOf(run, door)), runId: run };
  return agent === undefined
    ? { kind: { case: 'run', value } }
    : { kind: { case: 'agent', value: { ...value, agentInstance: agent } } };
}

async function tenantOf(runId: string, { runs }: Pick<WritClient, 'runs'>): Promise<string> {
  return (await runs.getRun({ runId })).run?.tenant ?? '';
}

function badScope(sentence: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_SCOPE', sentence, { field: 'scope' });
}
