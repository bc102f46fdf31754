import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import type { Handler } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { pageToken, readPageToken } from '../../domain/run/page-token.ts';

const DEFAULT_PAGE = 50;
const NO_FILTERS = {};

/** ListAgents: the agents that clients can start, by name. */
export function listAgents(
  context: SupervisorContext,
): Handler<typeof RunService.method.listAgents> {
  return async (request) => {
    const limit = request.pageSize === 0 ? DEFAULT_PAGE : request.pageSize;
    const [after = ''] = readPageToken(request.pageToken, NO_FILTERS, 1) ?? [];
    const rest = [...context.agents.values()]
      .filter(({ name }) => name > after)
      .sort((left, right) => (left.name < right.name ? -1 : 1));
    const page = rest.slice(0, limit);
    const last = page.at(-1);
    return {
      agents: page.map(({ name, description, definitionHash, tools }) => ({
        name,
        description,
        definitionHash,
        tools: [...tools],
      })),
      nextPageToken:
        rest.length > limit && last !== undefined ? pageToken([last.name], NO_FILTERS) : '',
    };
  };
}
