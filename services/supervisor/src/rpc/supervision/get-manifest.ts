import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { NotFoundError } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { admitAgent } from '../../app/agent/admit-agent.ts';
import type { SupervisorContext } from '../../context.ts';
import { manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { keyOf } from '../../store/agent/agents.ts';
import { findDefinition } from '../../store/run/definitions.ts';
import { manifestMessage } from '../../wire/manifest.ts';

/**
 * GetManifest: the definition of the calling agent, as of the start of its run, or of an agent that it may delegate
 * to; no others (AG-1, SUP-9).
 */
export function getManifest(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.getManifest> {
  return async ({ name }, call) => {
    const agent = await context.store.transaction((trx) => admitAgent(trx, call));
    const own = manifestFromJson(agent.manifest);
    if (name === '' || name === own.name) return { manifest: manifestMessage(own) };
    const other = await findDefinition(context.store.db, keyOf(agent), name);
    if (other === undefined || !own.subAgents.some((child) => child.name === name)) {
      throw new NotFoundError('AGENT_NOT_FOUND', `${own.name} has no sub-agent "${name}".`, {
        field: 'name',
      });
    }
    return { manifest: manifestMessage(other) };
  };
}
