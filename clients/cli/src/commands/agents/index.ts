import { create } from '@bufbuild/protobuf';
import type { AgentInfo } from '@writ/contracts/writ/run/v1/run_pb';
import { ListAgentsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { type Column, table } from '../../output/table.ts';

const COLUMNS: readonly Column<AgentInfo>[] = [
  { heading: 'AGENT', text: ({ name }) => name },
  { heading: 'DESCRIPTION', text: ({ description }) => description },
  { heading: 'TOOLS', text: ({ tools }) => tools.join(', ') },
];

/** `writ agents`: the agents that clients can start (PE-2). */
export const agentCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('agents')))
    .description('List the agents that can be started.')
    .action(async (options: ClientOptions & FormatOptions) => {
      const { runs } = openClient(options, io);
      const { rows: agents } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
        const { agents: rows, nextPageToken } = await runs.listAgents(page);
        return { rows, nextPageToken };
      });
      const value = create(ListAgentsResponseSchema, { agents });
      show(io, options, { schema: ListAgentsResponseSchema, value }, () => table(COLUMNS, agents));
      done(EXIT.success);
    });
};
