import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RefundDesk, refund } from './refund-desk.ts';

type Who = 'anna' | 'eve';
type Asked = Readonly<Record<string, unknown>>;
interface Page {
  readonly nextPageToken: string;
}

/** A list, a filter under which it has more than a page, and others that are another question. */
interface List {
  readonly name: string;
  readonly list: (who: Who, asked: Asked) => Promise<Page>;
  readonly filter: Asked;
  readonly others: readonly Asked[];
}

let desk: RefundDesk;

const LISTS: readonly List[] = [
  {
    name: 'ListRuns',
    list: (who, asked) => desk.supervisor.as(who, RunService).listRuns(asked),
    filter: { agent: 'refund-worker' },
    others: [
      { agent: 'other' },
      { sessionId: 'session_1' },
      { labels: { team: 'a' } },
      { states: [RunState.RUNNING] },
      { oldestFirst: true },
    ],
  },
  {
    name: 'ListApprovals',
    list: (who, asked) => desk.supervisor.as(who, ApprovalService).listApprovals(asked),
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
    list: (who, asked) => desk.supervisor.as(who, ControlService).listHalts(asked),
    filter: { inForceOnly: false },
    others: [{ inForceOnly: true }],
  },
  {
    name: 'ListAuditRecords',
    list: (who, asked) => desk.supervisor.as(who, AuditService).listAuditRecords(asked),
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

describe('the page tokens', () => {
  beforeAll(async () => {
    desk = await RefundDesk.start();
    const scopes: string[] = [];
    for (let times = 0; times < 2; times += 1) {
      const agent = await desk.agent();
      await agent.propose('op-1', refund(1200));
      scopes.push(agent.scope.runId);
    }
    const control = desk.supervisor.as('anna', ControlService);
    for (const runId of scopes) {
      const scope = { kind: { case: 'run', value: { tenant: 'acme', runId } } } as const;
      await control.halt({ requestId: `h-${runId}`, scope, reason: 'To have some.' });
    }
  });
  afterAll(() => desk.close());

  it.each(LISTS)(
    'of $name are good for their tenant and filters alone, and for a place that it gave (SYS-3, SYS-6)',
    async ({ list, filter, others }) => {
      const { nextPageToken: pageToken } = await list('anna', { ...filter, pageSize: 1 });
      expect(pageToken).not.toBe('');
      // The size of a page is no filter.
      await expect(list('anna', { ...filter, pageSize: 2, pageToken })).resolves.toBeDefined();
      const [digest = '', ...position] = JSON.parse(
        Buffer.from(pageToken, 'base64url').toString(),
      ) as string[];
      const forged = [
        [digest],
        [digest, ...position, 'more'],
        [digest, ...position.map(() => 'x')],
      ];
      const refused: readonly (readonly [Who, Asked])[] = [
        ['eve', { ...filter, pageToken }],
        ...others.map((other) => ['anna', { ...filter, ...other, pageToken }] as const),
        ...forged.map((parts) => {
          const token = Buffer.from(JSON.stringify(parts)).toString('base64url');
          return ['anna', { ...filter, pageToken: token }] as const;
        }),
      ];
      for (const [who, asked] of refused) {
        await expect(list(who, asked), who).rejects.toMatchObject({
          kind: 'invalid_argument',
          reason: 'INVALID_PAGE_TOKEN',
          metadata: { field: 'page_token' },
        });
      }
    },
  );
});
