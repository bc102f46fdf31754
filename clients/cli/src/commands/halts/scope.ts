import type { MessageInitShape } from '@bufbuild/protobuf';
import type { WritClient } from '@writ/client';
import type { ScopeSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import { InvalidRequestError } from '@writ/kernel';

/** The scope options of a command line. */
export interface ScopeOptions {
  readonly run?: string;
  readonly agent?: string;
  readonly tenant?: string;
  readonly everything?: boolean;
}

/**
 * The scope of the options; looks up the tenant of a run when --tenant is not set.
 * @throws InvalidRequestError INVALID_SCOPE for no scope, --agent without --run, or --everything with another scope
 */
export async function scopeFrom(
  { run, agent, tenant, everything = false }: ScopeOptions,
  client: Pick<WritClient, 'runs'>,
): Promise<MessageInitShape<typeof ScopeSchema>> {
  if (everything && (run ?? agent ?? tenant) !== undefined) {
    throw badScope('--everything cannot be combined with another scope.');
  }
  if (everything) return { kind: { case: 'everything', value: {} } };
  if (run === undefined) {
    if (agent !== undefined) throw badScope('--agent requires --run, the run of the agent.');
    if (tenant !== undefined) return { kind: { case: 'tenant', value: tenant } };
    throw badScope('A scope is required: --run, --run with --agent, --tenant or --everything.');
  }
  const value = { tenant: tenant ?? (await tenantOf(run, client)), runId: run };
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
