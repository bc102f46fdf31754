import { create } from '@bufbuild/protobuf';
import { wordsOf } from '@writ/client/display';
import { type AgentNode, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ListRunAgentsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';

const COLUMNS: readonly Column<AgentNode>[] = [
  { heading: 'AGENT', text: ({ agent }) => agent?.name ?? '' },
  { heading: 'INSTANCE', text: ({ agent }) => agent?.instance ?? '' },
  { heading: 'KIND', text: ({ kind }) => wordsOf(AgentKind, kind) },
  { heading: 'PARENT', text: ({ parent }) => parent?.instance ?? '' },
  { heading: 'STATE', text: ({ state }) => wordsOf(RunState, state) },
  { heading: 'WAITS FOR', text: ({ waitingFor }) => waitingFor.join(', ') },
  { heading: 'STEPS', isNumber: true, text: ({ steps }) => String(steps) },
  { heading: 'STOP REASON', text: ({ stopReason }) => stopReason },
];

/** Prints the supervision tree of a run (SUP-1, AP-6). */
export async function listRunAgents(
  runId: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const { runs: service } = openClient(options, io);
  const { rows } = await readRows(Number.POSITIVE_INFINITY, async (page) => {
    const { agents, nextPageToken } = await service.listRunAgents({ runId, ...page });
    return { rows: agents, nextPageToken };
  });
  const value = create(ListRunAgentsResponseSchema, { agents: rows });
  show(io, options, { schema: ListRunAgentsResponseSchema, value }, () => table(COLUMNS, rows));
  return EXIT.success;
}
