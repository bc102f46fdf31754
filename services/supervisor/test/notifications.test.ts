import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { hookSubject } from '@writ/bus';
import {
  ControlService,
  NotificationState,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { UnavailableError } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadNotifications } from '../src/app/notify/notifications-file.ts';
import { newNotification } from '../src/app/notify/notify.ts';
import { insertNotifications } from '../src/store/notifications.ts';
import { RefundHarness, refund } from './refund-harness.ts';
import { openSecondStore } from './supervisor-under-test.ts';
import { SECRET, WebhookReceiver } from './webhook-receiver.ts';

const VARIABLES = { HOOK_SECRET: SECRET };

let receiver: WebhookReceiver;
let harness: RefundHarness;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
});
afterEach(async () => {
  await harness.close();
  await receiver.close();
});

async function start(text: string): Promise<void> {
  const notifications = { text, file: 'notifications.yaml' };
  const config = { notifications, variables: VARIABLES, notifyPollMs: 50, notifyRetryMs: 10 };
  harness = await RefundHarness.start({ config });
}

describe('notifications', () => {
  it('are signed when an approval is requested, and contain ids but no content (PE-2, HK-1)', async () => {
    await start(receiver.file());
    const { scope } = await escalated();
    const [request] = await receiver.requests(1);
    expect(request).toMatchObject({ isSigned: true, path: '/hook' });
    const { approvals } = await harness.approvals().listApprovals({});
    const approvalId = approvals[0]?.approvalId ?? '';
    expect(JSON.parse(request?.body ?? '')).toEqual({
      type: 'approval_requested',
      timestamp: expect.any(String),
      data: {
        tenant: 'acme',
        run_id: scope.runId,
        session_id: expect.any(String),
        agent: 'refund-worker',
        agent_instance: scope.agentInstance,
        approval_id: approvalId,
        tool: 'issue_refund',
        link: `https://writ.example/approvals/${approvalId}`,
      },
    });
  });

  it('are repeated with the same webhook-id until the endpoint accepts them (PE-2)', async () => {
    receiver.statuses.push(500, 302, 429);
    await start(receiver.file());
    await escalated();
    const requests = await receiver.requests(4);
    expect(new Set(requests.map(({ id }) => id)).size).toBe(1);
    expect(requests.every(({ isSigned }) => isSigned)).toBe(true);
    await expect.poll(() => counted()).toHaveLength(4);
  });

  it('are sent once for a halt, however many runs it parks (SV-9)', async () => {
    await start(receiver.file('events: [halted]'));
    await escalated();
    await harness.agent();
    const scope = { kind: { case: 'tenant', value: 'acme' } } as const;
    const control = harness.supervisor.as('anna', ControlService);
    const { halt } = await control.halt({ requestId: 'h-1', scope, reason: 'Stop.' });
    const second = await control.halt({ requestId: 'h-2', scope, reason: 'Stop.' });
    const requests = await receiver.requests(2);
    expect(requests.map(({ body }) => JSON.parse(body).data)).toEqual(
      [halt, second.halt].map((each) => ({
        tenant: 'acme',
        halt_id: each?.haltId,
        link: 'https://writ.example/halts',
      })),
    );
  });

  it('are sent for a halt only when every service has confirmed it (SV-9)', async () => {
    await start(receiver.file('events: [halted]'));
    const { runId } = (await harness.agent()).scope;
    const { fakes } = harness.supervisor;
    fakes.answer(ToolGatewayService.method.freeze, () => {
      throw new UnavailableError('UNAVAILABLE', 'The peer is down.');
    });
    const control = harness.supervisor.as('anna', ControlService);
    const scope = { kind: { case: 'run', value: { tenant: 'acme', runId } } } as const;
    const order = { requestId: 'h-1', scope, reason: 'Stop.' };
    // Long enough for the meter to respond on a busy machine.
    await expect(control.halt(order, { timeoutMs: 2_500 })).rejects.toMatchObject({
      reason: 'HALT_PENDING',
      metadata: { waiting_for: 'tool-gateway' },
    });
    const stateNow = async () => (await harness.supervisor.runs().getRun({ runId })).run?.state;
    await expect.poll(stateNow).toBe(RunState.PARKED);
    expect(await recorded()).toEqual([]);
    fakes.answer(ToolGatewayService.method.freeze, () => ({}));
    const { halt } = await control.halt(order);
    const [request] = await receiver.requests(1);
    expect(JSON.parse(request?.body ?? '').data).toEqual({
      tenant: 'acme',
      run_id: runId,
      halt_id: halt?.haltId,
      link: 'https://writ.example/halts',
    });
    expect(await recorded()).toHaveLength(1);
  });

  it.each(['agent', 'run', 'tenant', 'everything'] as const)(
    'name the scope of a halt, not of a run that the halt parks: %s (SV-9)',
    async (kind) => {
      await start(receiver.file('format: slack'));
      const { tenant, runId, agentInstance } = (await harness.agent()).scope;
      const scopes = {
        agent: { case: 'agent', value: { tenant, runId, agentInstance } },
        run: { case: 'run', value: { tenant, runId } },
        tenant: { case: 'tenant', value: tenant },
        everything: { case: 'everything', value: {} },
      } as const;
      const operator = harness.supervisor.as('olga', ControlService);
      const order = { requestId: 'h-1', scope: { kind: scopes[kind] }, reason: 'Stop.' };
      const { halt } = await operator.halt(order);
      const names = {
        agent: `agent ${agentInstance}, run ${runId}, tenant acme`,
        run: `run ${runId}, tenant acme`,
        tenant: 'tenant acme',
        everything: 'everything',
      };
      const [request] = await receiver.requests(1);
      expect(JSON.parse(request?.body ?? '').text).toBe(
        `Halt ${halt?.haltId} is in force (${names[kind]}). <https://writ.example/halts|Open in Writ>`,
      );
    },
  );

  it('are sent once for each selected budget threshold (EM-5)', async () => {
    await start(receiver.file('budget_thresholds: [80]'));
    const { scope } = await harness.agent();
    const threshold = (thresholdPercent: number) =>
      publish({
        eventId: `evt-${thresholdPercent}`,
        type: HookEventType.BUDGET_THRESHOLD,
        runId: scope.runId,
        dimension: 'cost',
        budgetLevel: BudgetLevel.TENANT_MONTH,
        thresholdPercent,
      });
    for (const percent of [50, 80, 80]) await threshold(percent);
    const [request] = await receiver.requests(1);
    expect(JSON.parse(request?.body ?? '')).toMatchObject({
      type: 'budget_threshold',
      data: { level: 'tenant_month', dimension: 'cost', percent: 80, run_id: scope.runId },
    });
    await escalated();
    const types = (await receiver.requests(2)).map(({ body }) => JSON.parse(body).type);
    expect(types).toEqual(['budget_threshold', 'approval_requested']);
  });

  it('contain a text with a link for Slack (PE-2)', async () => {
    await start(receiver.file('format: slack'));
    await escalated();
    const [request] = await receiver.requests(1);
    expect(Object.keys(JSON.parse(request?.body ?? ''))).toEqual(['text']);
    expect(JSON.parse(request?.body ?? '').text).toMatch(
      /^Approval requested: agent refund-worker, tool issue_refund \(run \S+, tenant acme\)\. <https:\/\/writ\.example\/approvals\/\S+\|Open in Writ>$/,
    );
  });

  it('reach no private network unless the file allows the host (TG-9)', async () => {
    await start(`${receiver.file()}
    - name: inside
      url: http://localhost:${receiver.port}/inside
      secret_env: HOOK_SECRET
`);
    await escalated();
    // Both endpoints were attempted.
    await expect.poll(() => counted().length).toBeGreaterThan(2);
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook']);
  });

  it('are sent only to the endpoints of the tenant whose event caused them (SYS-6)', async () => {
    await start(receiver.file());
    await harness.supervisor.as('eve', ControlService).halt({
      requestId: 'h-1',
      scope: { kind: { case: 'tenant', value: 'rivals' } },
      reason: 'Stop.',
    });
    await escalated();
    const [first] = await receiver.requests(1);
    expect(JSON.parse(first?.body ?? '').type).toBe('approval_requested');
  });
});

describe('an endpoint that does not respond', () => {
  /** More notifications than the four that the sender sends to one endpoint at the same time. */
  const OTHERS = 20;

  it.each([
    ['one', 1],
    ['more notifications than one read returns', 300],
  ])(
    'does not delay notifications of another tenant; pending for the endpoint: %s (PE-2, SYS-6)',
    async (_, count) => {
      receiver.hanging.add('/hangs');
      await start(`${receiver.file('', '/hangs')}
  rivals:
    - name: on-call
      url: http://127.0.0.1:${receiver.port}/hook
      secret_env: HOOK_SECRET
`);
      await record('acme', count);
      await vi.waitFor(() => expect(receivedAt('/hangs').length).toBeGreaterThan(0));
      await record('rivals', OTHERS);
      await vi.waitFor(() => expect(receivedAt('/hook')).toHaveLength(OTHERS));
      expect(new Set(receivedAt('/hook').map(({ id }) => id)).size).toBe(OTHERS);
    },
  );

  const receivedAt = (url: string) => receiver.received.filter(({ path }) => path === url);

  /** Records notifications of a tenant that are due now. */
  async function record(tenant: string, count: number): Promise<void> {
    const at = new Date();
    const message = { type: 'test', timestamp: at.toISOString(), data: { tenant } } as const;
    const target = { scope: tenant, endpoint: 'on-call', tenant };
    const rows = Array.from({ length: count }, (_, n) =>
      newNotification(`ntf_${tenant}_${n}`, target, message, at),
    );
    const store = await openSecondStore(harness.supervisor);
    await store.transaction((trx) => insertNotifications(trx, rows));
    await store.close();
  }
});

describe('TestNotifications', () => {
  const control = (person: 'anna' | 'boris' | 'eve' = 'anna') =>
    harness.supervisor.as(person, ControlService);

  it('sends a signed message to every endpoint of the tenant and reports it, once for each request (PE-2)', async () => {
    receiver.statuses.push(503);
    await start(receiver.file('events: [halted]'));
    const first = await control().testNotifications({ requestId: 't-1' });
    expect(first.notifications).toMatchObject([
      { endpoint: 'on-call', state: NotificationState.DELIVERED, attempts: 2, problem: '' },
    ]);
    const requests = await receiver.requests(2);
    expect(requests.map(({ id, isSigned }) => ({ id, isSigned }))).toEqual(
      Array(2).fill({ id: first.notifications[0]?.notificationId, isSigned: true }),
    );
    expect(JSON.parse(requests[1]?.body ?? '')).toMatchObject({
      type: 'test',
      data: { tenant: 'acme', link: 'https://writ.example' },
    });
    expect(await control().testNotifications({ requestId: 't-1' })).toEqual(first);
    expect(receiver.received).toHaveLength(2);
  });

  it('reports the egress rule that blocked an attempt while the endpoint is retried (PE-2, TG-9)', async () => {
    await start(`
tenants:
  acme:
    - name: inside
      url: http://localhost:${receiver.port}/inside
      secret_env: HOOK_SECRET
`);
    const waiting = new AbortController();
    const call = control().testNotifications({ requestId: 't-1' }, { signal: waiting.signal });
    call.catch(() => undefined);
    // An attempt is counted after its problem is recorded.
    await vi.waitFor(() => expect(counted().length).toBeGreaterThan(0));
    waiting.abort();
    const again = await control().testNotifications({ requestId: 't-1' });
    expect(again.notifications).toMatchObject([
      { state: NotificationState.OPEN, problem: expect.stringMatching(/^egress_/) },
    ]);
    expect(receiver.received).toEqual([]);
  });

  it('requires the role admin or operator, and the role operator for another tenant (SYS-6)', async () => {
    await start(receiver.file());
    const denied = control('boris').testNotifications({ requestId: 't-1' });
    await expect(denied).rejects.toMatchObject({ reason: 'ROLE_REQUIRED' });
    const foreign = control('eve').testNotifications({ requestId: 't-1', tenant: 'acme' });
    await expect(foreign).rejects.toMatchObject({ reason: 'OPERATOR_REQUIRED' });
    expect((await control('eve').testNotifications({ requestId: 't-2' })).notifications).toEqual(
      [],
    );
    expect(receiver.received).toEqual([]);
  });
});

describe('the notifications file', () => {
  it.each([
    ['- { name: a, url: "https://a.example" }', 'requires secret_env or secret_file'],
    ['- { name: a, format: slack }', 'requires exactly one of url and url_env.'],
    ['- { name: a, format: slack, url_env: NO_URL }', 'requires NO_URL, which is not set.'],
    ['- { name: a, url: "https://a.example", secret_env: WEAK }', 'has an invalid secret'],
    [
      '- { name: a, url: "https://a.example", secret_file: /missing/secret }',
      // The error reports no other problem.
      /^n\.yaml:3:\d+: endpoint "a" requires \/missing\/secret, which cannot be read\.$/,
    ],
    [
      '- { name: a, url: "https://a.example", secret_env: GOOD, secret_file: /missing/secret }',
      /^n\.yaml:3:\d+: endpoint "a" requires at most one of secret_env and secret_file\.$/,
    ],
    ['- { name: a, url: "https://a.example", event: [halted] }', 'event'],
  ])('is rejected with its line: %s (SYS-3)', (endpoint, sentence) => {
    harness = { close: async () => undefined } as RefundHarness;
    const text = `tenants:\n  acme:\n    ${endpoint}\n`;
    expect(() => loadNotifications({ text, file: 'n.yaml' }, { WEAK: 'whsec_YQ==' })).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/n\.yaml:3:/) }),
    );
    expect(() => loadNotifications({ text, file: 'n.yaml' }, { WEAK: 'whsec_YQ==' })).toThrow(
      sentence,
    );
  });
});

const counted = () => harness.supervisor.counted.filter((metric) => metric === 'notifications');

/** The ids of the recorded notifications. */
async function recorded(): Promise<readonly string[]> {
  const store = await openSecondStore(harness.supervisor);
  const rows = await store.db.selectFrom('notifications').select('notification_id').execute();
  await store.close();
  return rows.map(({ notification_id: id }) => id);
}

/** Starts a run whose refund waits for an approval. */
async function escalated() {
  const agent = await harness.agent();
  await agent.propose('op-1', refund(1200));
  return agent;
}

async function publish(
  event: MessageInitShape<typeof HookEventSchema> & { eventId: string; runId: string },
): Promise<void> {
  const message = create(HookEventSchema, { emitter: 'execution-meter', tenant: 'acme', ...event });
  const subject = { tenant: 'acme', runId: event.runId, event: 'BUDGET_THRESHOLD' } as const;
  await harness.supervisor.bus.publish({
    eventId: event.eventId,
    subject: hookSubject(subject),
    payload: toBinary(HookEventSchema, message),
    headers: {},
  });
}
