import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RefundHarness, refund } from './refund-harness.ts';

type PersonName = 'anna' | 'eve';
type Request = Readonly<Record<string, unknown>>;
interface Page {
  readonly nextPageToken: string;
}

/** A list RPC, a filter with more than one page, and filters that invalidate a token. */
interface List {
  readonly name: string;
  readonly list: (person: PersonName, request: Request) => Promise<Page>;
  readonly filter: Request;
  readonly others: readonly Request[];
}

let harness: RefundHarness;

const LISTS: readonly List[] = [
  {
    name: 'ListRuns',
    list: (person, request) => harness.supervisor.as(person, RunService).listRuns(request),
    filter: { agent: 'refund-worker' },
    others: [
      { agent: 'other' },
      { sessionId: 'session_1' },
      { labels: { team: 'a' } },
      { states: [RunState.RUNNING] },
      { oldestFirst: true },
      { startTime: { seconds: 1n, nanos: 0 } },
      { endTime: { seconds: 9_999_999_999n, nanos: 0 } },
    ],
  },
  {
    name: 'ListApprovals',
    list: (person, request) =>
      harness.supervisor.as(person, ApprovalService).listApprovals(request),
    filter: { tool: 'issue_refund' },
    others: [
      { tool: 'other' },
      { runId: 'run_1' },
      { agentName: 'other' },
      { states: [ApprovalState.PENDING] },
    ],
  },
  {
    name: 'ListHalts',
    list: (person, request) => harness.supervisor.as(person, ControlService).listHalts(request),
    filter: { inForceOnly: false },
    others: [{ inForceOnly: true }],
  },
  {
    name: 'ListAuditRecords',
    list: (person, request) =>
      harness.supervisor.as(person, AuditService).listAuditRecords(request),
    filter: { kind: 'decision' },
    others: [
      { kind: 'receipt' },
      { runId: 'run_1' },
      { agentInstance: 'root' },
      { afterSequence: 1n },
      { startTime: { seconds: 1n, nanos: 0 } },
      { endTime: { seconds: 9_999_999_999n, nanos: 0 } },
    ],
  },
];

describe('page tokens', () => {
  beforeAll(async () => {
    harness = await RefundHarness.start();
    const scopes: string[] = [];
    for (let times = 0; times < 2; times += 1) {
      const agent = await harness.agent();
      await agent.propose('op-1', refund(1200));
      scopes.push(agent.scope.runId);
    }
    const control = harness.supervisor.as('anna', ControlService);
    for (const runId of scopes) {
      const scope = { kind: { case: 'run', value: { tenant: 'acme', runId } } } as const;
      await control.halt({ requestId: `h-${runId}`, scope, reason: 'Test data.' });
    }
  });
  afterAll(() => harness.close());

  it.each(LISTS)(
    'are valid only for their tenant, their filters and a position that was returned: $name (SYS-3, SYS-6)',
    async ({ list, filter, others }) => {
      const { nextPageToken: pageToken } = await list('anna', { ...filter, pageSize: 1 });
      expect(pageToken).not.toBe('');
      // The page size is not a filter.
      await expect(list('anna', { ...filter, pageSize: 2, pageToken })).resolves.toBeDefined();
      const [digest = '', ...position] = JSON.parse(
        Buffer.from(pageToken, 'base64url').toString(),
      ) as string[];
      const forged = [
        [digest],
        [digest, ...position, 'more'],
        [digest, ...position.map(() => 'x')],
      ];
      const refused: readonly (readonly [PersonName, Request])[] = [
        ['eve', { ...filter, pageToken }],
        ...others.map((other) => ['anna', { ...filter, ...other, pageToken }] as const),
        ...forged.map((parts) => {
          const token = Buffer.from(JSON.stringify(parts)).toString('base64url');
          return ['anna', { ...filter, pageToken: token }] as const;
        }),
      ];
      for (const [person, request] of refused) {
        await expect(list(person, request), person).rejects.toMatchObject({
          kind: 'invalid_argument',
          reason: 'INVALID_PAGE_TOKEN',
          metadata: { field: 'page_token' },
        });
      }
    },
  );
});
