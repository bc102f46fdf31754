import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type QueryUsageRequest,
  UsageGroup,
} from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { InvalidRequestError, sha256Hex } from '@writ/kernel';
import type { UsageFilter, UsageGrouping, UsageQuery, UsageSum } from '../store/usage.ts';
import { usageMessage } from './tab.ts';

const DEFAULT_PAGE_SIZE = 100;

const GROUPS: Readonly<Record<UsageGroup, UsageGrouping | undefined>> = {
  [UsageGroup.UNSPECIFIED]: undefined,
  [UsageGroup.AGENT]: 'agent',
  [UsageGroup.RUN]: 'run',
  [UsageGroup.SESSION]: 'session',
  [UsageGroup.TENANT]: 'tenant',
  [UsageGroup.MODEL]: 'model',
  [UsageGroup.DAY]: 'day',
};

/**
 * Converts a QueryUsageRequest to a query, and returns it with the token of the next page.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function readUsageQuery(request: QueryUsageRequest): {
  readonly query: UsageQuery;
  readonly nextPageToken: string;
} {
  const groups = request.groupBy.flatMap((group) => GROUPS[group] ?? []);
  const filter = filterOf(request);
  const digest = sha256Hex(JSON.stringify([filter, groups])).slice(0, 16);
  const limit = request.pageSize === 0 ? DEFAULT_PAGE_SIZE : request.pageSize;
  const offset = readToken(request.pageToken, digest);
  const nextPageToken = `${digest}.${offset + limit}`;
  return { query: { filter, groups, offset, limit }, nextPageToken };
}

/** Converts the sum of one group. */
export function usageRow(sum: UsageSum) {
  const { agentName, agentInstance } = sum;
  return {
    tenant: sum.tenant,
    runId: sum.runId,
    sessionId: sum.sessionId,
    ...(agentInstance !== '' && { agent: { name: agentName, instance: agentInstance } }),
    model: sum.model,
    day: sum.day,
    totals: {
      usage: usageMessage(sum.usage),
      costNanoUsd: sum.cost,
      turns: sum.turns,
      estimatedTurns: sum.estimatedTurns,
      failedCalls: sum.failedCalls,
    },
  };
}

function filterOf(request: QueryUsageRequest): UsageFilter {
  const { tenant, runId, sessionId, agentInstance, model, startTime, endTime } = request;
  return {
    tenant,
    ...(runId !== '' && { runId }),
    ...(sessionId !== '' && { sessionId }),
    ...(agentInstance !== '' && { agentInstance }),
    ...(model !== '' && { model }),
    ...(startTime && { from: timestampDate(startTime) }),
    ...(endTime && { until: timestampDate(endTime) }),
  };
}

/** Reads a page token, which is valid only for the query that returned it. */
function readToken(token: string, queryDigest: string): number {
  if (token === '') return 0;
  const [digest, offset = ''] = token.split('.');
  if (digest === queryDigest && /^\d{1,9}$/.test(offset)) return Number(offset);
  throw new InvalidRequestError(
    'INVALID_PAGE_TOKEN',
    'page_token must be a next_page_token of the same query.',
    { field: 'page_token' },
  );
}
