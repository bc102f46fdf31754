import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  UsageGroup,
  type UsageRow,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { QueryUsageResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';
import { usdText } from '../../output/text.ts';
import type { Group } from './groups.ts';

/** Options of `writ usage`. */
export interface UsageOptions extends ClientOptions, FormatOptions {
  readonly by: readonly Group[];
  readonly since?: Date;
  readonly until?: Date;
  readonly tenant?: string;
  readonly run?: string;
  readonly session?: string;
  readonly model?: string;
  readonly limit: number;
}

/** A column for one dimension of `writ usage --by`, with the UsageGroup that selects this dimension in the request. */
interface GroupColumn extends Column<UsageRow> {
  readonly value: UsageGroup;
}

const COLUMNS: Readonly<Record<Group, GroupColumn>> = {
  agent: { value: UsageGroup.AGENT, heading: 'AGENT', text: ({ agent }) => agentText(agent) },
  run: { value: UsageGroup.RUN, heading: 'RUN', text: ({ runId }) => runId },
  session: { value: UsageGroup.SESSION, heading: 'SESSION', text: ({ sessionId }) => sessionId },
  tenant: { value: UsageGroup.TENANT, heading: 'TENANT', text: ({ tenant }) => tenant },
  model: { value: UsageGroup.MODEL, heading: 'MODEL', text: ({ model }) => model },
  day: { value: UsageGroup.DAY, heading: 'DAY', text: ({ day }) => day },
};

const TOTALS: readonly Column<UsageRow>[] = [
  {
    heading: 'INPUT TOKENS',
    isNumber: true,
    text: ({ totals }) => String(totals?.usage?.inputTokens ?? 0n),
  },
  {
    heading: 'OUTPUT TOKENS',
    isNumber: true,
    text: ({ totals }) => String(totals?.usage?.outputTokens ?? 0n),
  },
  { heading: 'TURNS', isNumber: true, text: ({ totals }) => String(totals?.turns ?? 0n) },
  { heading: 'FAILED', isNumber: true, text: ({ totals }) => String(totals?.failedCalls ?? 0n) },
  { heading: 'COST', isNumber: true, text: ({ totals }) => usdText(totals?.costNanoUsd ?? 0n) },
];

/** Prints settled usage, summed by the chosen dimensions. */
export async function queryUsage(options: UsageOptions, io: CliIo): Promise<Exit> {
  const { usage } = openClient(options, io);
  const { rows, more } = await readRows(options.limit, async (page) => {
    const answer = await usage.queryUsage({ ...filterOf(options), ...page });
    return { rows: answer.rows, nextPageToken: answer.nextPageToken };
  });
  const value = create(QueryUsageResponseSchema, { rows });
  const columns = [...options.by.map((by) => COLUMNS[by]), ...TOTALS];
  show(io, options, { schema: QueryUsageResponseSchema, value }, () => table(columns, rows));
  if (rows.length === 0) io.warn('No usage.');
  if (more) io.warn(`More rows exist: raise --limit above ${options.limit}.`);
  return EXIT.success;
}

function filterOf({ by, since, until, tenant, run, session, model }: UsageOptions) {
  return {
    groupBy: by.map((group) => COLUMNS[group].value),
    tenant: tenant ?? '',
    runId: run ?? '',
    sessionId: session ?? '',
    model: model ?? '',
    ...(since && { startTime: timestampFromDate(since) }),
    ...(until && { endTime: timestampFromDate(until) }),
  };
}

function agentText(agent: UsageRow['agent']): string {
  return agent === undefined ? '' : `${agent.name} (${agent.instance})`;
}
