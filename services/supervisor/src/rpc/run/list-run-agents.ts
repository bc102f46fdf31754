import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { readRunAgents } from '../../app/run/read-run-agents.ts';
import type { SupervisorContext } from '../../context.ts';
import { agentNode } from '../../wire/agent-node.ts';
import { pageNumber, readPage } from '../../wire/page-token.ts';

/**
 * ListRunAgents: the supervision tree of a run of the caller's tenant, parents before children (SUP-1, PE-1).
 * @throws NotFoundError RUN_NOT_FOUND; InvalidRequestError INVALID_PAGE_TOKEN
 */
export function listRunAgents(
  context: SupervisorContext,
): Handler<typeof RunService.method.listRunAgents> {
  return async (request, call) => {
    const run = { tenant: requirePerson(call).tenant, runId: request.runId };
    const { agents, slots } = await readRunAgents(context, run);
    const { page, nextPageToken } = await readPage(request, {
      filters: run,
      defaultSize: 100,
      parts: 2,
      read: async (position, limit) => {
        const [depth = '', instance = ''] = position ?? [];
        const start = position === undefined ? 0 : indexAfter(agents, pageNumber(depth), instance);
        return agents.slice(start, start + limit);
      },
      positionOf: ({ depth, instance }) => [String(depth), instance],
    });
    const now = context.clock.now();
    const nodes = page.map((agent) => agentNode(agent, slots.get(agent.instance), now));
    return { agents: nodes, nextPageToken };
  };
}

/** Index of the first agent after a position, in the order of the list. */
function indexAfter(
  agents: readonly { readonly depth: number; readonly instance: string }[],
  depth: number,
  instance: string,
): number {
  const index = agents.findIndex(
    (agent) => agent.depth > depth || (agent.depth === depth && agent.instance > instance),
  );
  return index === -1 ? agents.length : index;
}
