import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import type { Handler } from '@writ/rpc';
import { startableAgents } from '../../app/run/start-run.ts';
import type { SupervisorContext } from '../../context.ts';
import { readPage } from '../../wire/page-token.ts';

/** ListAgents: returns the agents that clients can start, sorted by name. */
export function listAgents(
  context: SupervisorContext,
): Handler<typeof RunService.method.listAgents> {
  return async (request) => {
    const { page, nextPageToken } = await readPage(request, {
      filters: {},
      parts: 1,
      read: async ([after = ''] = [], limit) =>
        startableAgents(context.agents)
          .filter(({ name }) => name > after)
          .slice(0, limit),
      positionOf: ({ name }) => [name],
    });
    return {
      agents: page.map(({ name, description, definitionHash, tools }) => ({
        name,
        description,
        definitionHash,
        tools: [...tools],
      })),
      nextPageToken,
    };
  };
}
