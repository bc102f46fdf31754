import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  UsageGroup,
  type UsageRow,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { QueryUsageResponseSchema } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { InvalidArgumentError } from 'commander';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { limitOf, readRows } from '../../output/pages.ts';
import { type Column, table } from '../../output/table.ts';
import { usdText } from '../../output/text.ts';
import { timeOf } from '../../output/time-option.ts';

interface UsageOptions extends ClientOptions, FormatOptions {
  readonly by: readonly Group[];
  readonly since?: Date;
  readonly until?: Date;
  readonly tenant?: string;
  readonly run?: string;
  readonly session?: string;
  readonly model?: string;
  readonly limit: number;
}

type Group = keyof typeof GROUPS;

const GROUPS = {
  agent: {
    value: UsageGroup.AGENT,
    heading: 'AGENT',
    text: ({ agent }: UsageRow) => agentText(agent),
  },
  run: { value: UsageGroup.RUN, heading: 'RUN', text: ({ runId }: UsageRow) => runId },
  session: {
    value: UsageGroup.SESSION,
    heading: 'SESSION',
    text: ({ sessionId }: UsageRow) => sessionId,
  },
  tenant: { value: UsageGroup.TENANT, heading: 'TENANT', text: ({ tenant }: UsageRow) => tenant },
  model: { value: UsageGroup.MODEL, heading: 'MODEL', text: ({ model }: UsageRow) => model },
  day: { value: UsageGroup.DAY, heading: 'DAY', text: ({ day }: UsageRow) => day },
} as const;

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

/** `writ usage`: settled usage, summed by any of six dimensions (EM-10, PE-1). */
export const usageCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('usage')))
    .description('Sum what was spent; usage of calls in flight is not included.')
    .option(
      '--by <dimension,...>',
      `one row for each ${Object.keys(GROUPS).join(', ')}`,
      groupsOf,
      [],
    )
    .option('--since <time>', 'settled at or after this time, such as 2026-11-01 (UTC)', timeOf)
    .option('--until <time>', 'settled before this time', timeOf)
    .option('--tenant <tenant>', 'another tenant; needs the role operator')
    .option('--run <id>', 'only this run')
    .option('--session <id>', 'only this session')
    .option('--model <alias>', 'only this model')
    .option('--limit <count>', 'most rows to list', limitOf, 1_000)
    .action(async (options: UsageOptions) => {
      const { usage } = openClient(options, io);
      const { rows, more } = await readRows(options.limit, async (page) => {
        const answer = await usage.queryUsage({ ...filterOf(options), ...page });
        return { rows: answer.rows, nextPageToken: answer.nextPageToken };
      });
      const value = create(QueryUsageResponseSchema, { rows });
      const columns = [...options.by.map((by) => GROUPS[by]), ...TOTALS];
      show(io, options, { schema: QueryUsageResponseSchema, value }, () => table(columns, rows));
      if (rows.length === 0) io.warn('No usage.');
      if (more) io.warn(`More rows exist: raise --limit above ${options.limit}.`);
      done(EXIT.success);
    });
};

function filterOf({ by, since, until, tenant, run, session, model }: UsageOptions) {
  return {
    groupBy: by.map((group) => GROUPS[group].value),
    tenant: tenant ?? '',
    runId: run ?? '',
    sessionId: session ?? '',
    model: model ?? '',
    ...(since && { startTime: timestampFromDate(since) }),
    ...(until && { endTime: timestampFromDate(until) }),
  };
}

function groupsOf(text: string, groups: readonly Group[]): Group[] {
  const added = text.split(',').map((one) => one.trim().toLowerCase());
  const isGroup = (name: string): name is Group => Object.hasOwn(GROUPS, name);
  if (!added.every(isGroup))
    throw new InvalidArgumentError(`Dimensions are ${Object.keys(GROUPS).join(', ')}.`);
  return [...new Set([...groups, ...added])];
}

function agentText(agent: UsageRow['agent']): string {
  return agent === undefined ? '' : `${agent.name} (${agent.instance})`;
}
