import { create } from '@bufbuild/protobuf';
import { wordsOf } from '@writ/client/display';
import { type AgentNode, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ListRunAgentsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { type Column, table } from '../../output/table.ts';

const COLUMNS: readonly Column<AgentNode>[] = [
  { heading: 'AGENT', text: ({ agent }) => agent?.name ?? '' },
  { heading: 'INSTANCE', text: ({ agent }) => agent?.instance ?? '' },
  { heading: 'KIND', text: ({ kind }) => wordsOf(AgentKind, kind) },
  { heading: 'PARENT', text: ({ parent }) => parent?.instance ?? '' },
  { heading: 'STATE', text: ({ state }) => wordsOf(RunState, state) },
  { heading: 'STEPS', isNumber: true, text: ({ steps }) => String(steps) },
  { heading: 'STOP REASON', text: ({ stopReason }) => stopReason },
];

/** `writ runs agents`: the supervision tree of a run (SUP-1, AP-6). */
export const runAgentCommands: CommandGroup = (runs, io, done) => {
  withFormat(withClientOptions(runs.command('agents')))
    .argument('<run-id>', 'the run')
    .description('List the agents of a run, parents before children.')
    .action(async (runId: string, options: ClientOptions & FormatOptions) => {
      const { runs: service } = openClient(options, io);
      const { rows } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
        const { agents, nextPageToken } = await service.listRunAgents({ runId, ...page });
        return { rows: agents, nextPageToken };
      });
      const value = create(ListRunAgentsResponseSchema, { agents: rows });
      show(io, options, { schema: ListRunAgentsResponseSchema, value }, () => table(COLUMNS, rows));
      done(EXIT.success);
    });
};
