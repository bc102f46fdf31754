import { create } from '@bufbuild/protobuf';
import type { AgentInfo } from '@writ/contracts/writ/run/v1/run_pb';
import { ListAgentsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';

const COLUMNS: readonly Column<AgentInfo>[] = [
  { heading: 'AGENT', text: ({ name }) => name },
  { heading: 'DESCRIPTION', text: ({ description }) => description },
  { heading: 'TOOLS', text: ({ tools }) => tools.join(', ') },
];

/** Prints the agents that clients can start. */
export async function listAgents(options: ClientOptions & FormatOptions, io: CliIo): Promise<Exit> {
  const { runs } = openClient(options, io);
  const { rows: agents } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
    const { agents: rows, nextPageToken } = await runs.listAgents(page);
    return { rows, nextPageToken };
  });
  const value = create(ListAgentsResponseSchema, { agents });
  show(io, options, { schema: ListAgentsResponseSchema, value }, () => table(COLUMNS, agents));
  return EXIT.success;
}
