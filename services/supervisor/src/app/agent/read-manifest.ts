import { NotFoundError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { keyOf } from '../../store/agent/agents.ts';
import { findDefinition } from '../../store/run/definitions.ts';
import { admitAgent, callingAgent } from './admit-agent.ts';

/**
 * Reads the definition of the calling agent if `name` is empty or its own name, else the definition of a sub-agent with
 * this name. A run keeps the definitions with which it started (AG-1, SUP-9).
 * @throws NotFoundError AGENT_NOT_FOUND; the errors of admitAgent
 */
export async function readManifest(
  { store }: Pick<SupervisorContext, 'store'>,
  call: CallContext,
  name: string,
): Promise<AgentManifest> {
  const agent = await store.transaction((trx) => admitAgent(trx, call), {
    run: callingAgent(call),
  });
  const own = manifestFromJson(agent.manifest);
  if (name === '' || name === own.name) return own;
  const other = await findDefinition(store.db, keyOf(agent), name);
  if (other !== undefined && own.subAgents.some((child) => child.name === name)) return other;
  throw new NotFoundError('AGENT_NOT_FOUND', `${own.name} has no sub-agent "${name}".`, {
    field: 'name',
  });
}
