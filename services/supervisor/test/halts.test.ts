import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService, HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import { InFlightCallSchema, type ScopeSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { ManualClock, UnavailableError, type WritError } from '@writ/kernel';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { LOOK_UP, RefundHarness, refund, type TestAgent } from './refund-harness.ts';
import { openSecondStore } from './supervisor-under-test.ts';

const REASON = 'Refunds look wrong.';
const REJECT = { case: 'reject', value: {} } as const;
const EDIT = { case: 'approveWithEdits', value: { changesJson: '{"amount_usd":500}' } } as const;
const HALTED = { reason: 'HALTED', message: `Halted by anna: ${REASON}` };

/** Makes the database reject each statement that extends an approval, so that a lift cannot complete. */
async function rejectExtensions(store: SupervisorStore): Promise<void> {
  const onUpdate = 'before update of expires_at on approvals for each row';
  const message = 'an approval is extended';
  await store.transaction(async (trx) => {
    if (store.dialect === 'sqlite') {
      const body = `begin select raise(abort, '${message}'); end`;
      await sql.raw(`create trigger no_extension ${onUpdate} ${body}`).execute(trx);
      return;
    }
    const body = `begin raise exception '${message}'; end`;
    await sql`create function no_extension() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
      trx,
    );
    await sql
      .raw(`create trigger no_extension ${onUpdate} execute function no_extension()`)
      .execute(trx);
  });
}

/** Ends the effect of {@link rejectExtensions}. */
async function acceptExtensions(store: SupervisorStore): Promise<void> {
  const table = store.dialect === 'sqlite' ? '' : ' on approvals';
  await store.transaction(
    async (trx) => void (await sql.raw(`drop trigger no_extension${table}`).execute(trx)),
  );
}

describe('a halt in the supervisor', () => {
  let clock: ManualClock;
  let harness: RefundHarness;
  let agent: TestAgent;
  let requests = 0;

  beforeEach(async () => {
    clock = new ManualClock();
    harness = await RefundHarness.start({ clock });
    agent = await harness.agent();
  });
  afterEach(() => harness.close());

  const control = (person: 'anna' | 'eve' = 'anna') =>
    harness.supervisor.as(person, ControlService);
  const ofRun = () =>
    ({ kind: { case: 'run', value: { tenant: 'acme', runId: agent.scope.runId } } }) as const;
  async function halt(scope: MessageInitShape<typeof ScopeSchema> = ofRun()) {
    requests += 1;
    const response = await control().halt({ requestId: `halt-${requests}`, scope, reason: REASON });
    return response.halt;
  }
  const ofAgent = () =>
    ({
      kind: {
        case: 'agent',
        value: {
          tenant: 'acme',
          runId: agent.scope.runId,
          agentInstance: agent.scope.agentInstance,
        },
      },
    }) as const;
  async function resume(haltId = ''): Promise<void> {
    requests += 1;
    await control().resume({ requestId: `resume-${requests}`, haltId });
  }

  it('lets an approver reject but not approve an action until it is lifted (SV-5, SV-9)', async () => {
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const second = await agent.propose('op-2', refund(1300));
    const created = await halt();
    const decide = (id: string, requestId: string, answer: typeof REJECT | typeof EDIT) =>
      harness.approvals('dora').decideApproval({ approvalId: id, requestId, answer });
    await expect(decide(approvalId, 'd-1', EDIT)).rejects.toMatchObject(HALTED);
    const { approval } = await decide(approvalId, 'd-2', REJECT);
    expect(approval).toMatchObject({
      state: ApprovalState.REJECTED,
      humanApproval: { approved: false, decidedBy: 'dora', comment: '', basis: '' },
    });
    const { fakes } = harness.supervisor;
    const answers = () =>
      fakes
        .requests(AgentWorkerService.method.signal)
        .filter(({ name }) => name.startsWith('approval:'));
    expect(answers()).toEqual([]);
    await resume(created?.haltId);
    await vi.waitFor(() => expect(answers()).toHaveLength(1));
    expect(answers()[0]).toMatchObject({
      name: 'approval:op-1',
      approval: { decision: { stopReason: 'human_rejected', writ: '' } },
    });
    expect((await decide(second.approvalId, 'd-3', EDIT)).approval?.state).toBe(
      ApprovalState.APPROVED,
    );
  });

  it('emits events for its runs and for its scope when it begins and when it is lifted (HK-1, SV-9)', async () => {
    const published: string[] = [];
    await harness.supervisor.bus.subscribe({
      subject: 'writ.hooks.v1.acme.-.>',
      durable: 'test',
      handler: async ({ subject }) => void published.push(subject.split('.').at(-1) ?? ''),
    });
    const inRun = await halt();
    await resume(inRun?.haltId);
    const ofTenant = await halt({ kind: { case: 'tenant', value: 'acme' } });
    await resume(ofTenant?.haltId);
    await expect.poll(() => published).toEqual(['HALTED', 'HALT_LIFTED']);
    const { runId, agentInstance: instance } = agent.scope;
    await harness.supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    const events = await Array.fromAsync(harness.supervisor.runs().watchRun({ runId }));
    const of = (type: HookEventType, haltId = '') => ({ type, haltId, agent: { instance } });
    expect(
      events.flatMap(({ event }) =>
        event?.entry.case === 'hook' && event.entry.value.haltId !== '' ? [event.entry.value] : [],
      ),
    ).toMatchObject([
      { ...of(HookEventType.HALTED, inRun?.haltId), status: 'halted' },
      { ...of(HookEventType.HALT_LIFTED, inRun?.haltId), status: 'lifted' },
      of(HookEventType.HALTED, ofTenant?.haltId),
      of(HookEventType.HALT_LIFTED, ofTenant?.haltId),
    ]);
  });

  it('stops the active clock from the time of its order until it is lifted (EM-1, SV-9)', async () => {
    await agent.propose('op-1', LOOK_UP);
    clock.advance(20_000);
    const created = await halt();
    clock.advance(60_000);
    await resume(created?.haltId);
    clock.advance(9_000);
    expect((await agent.propose('op-2', LOOK_UP)).stopReason).toBe('');
    clock.advance(1_001);
    // The sweep may end the run before the review returns the stop reason.
    const last = agent.propose('op-3', LOOK_UP).then(
      ({ stopReason }) => stopReason,
      (refusal: WritError) => refusal.metadata.stop_reason,
    );
    expect(await last).toBe('max_seconds');
  });

  it('stops the active clock even while the meter does not confirm the halt (EM-1, SV-9)', async () => {
    await agent.propose('op-1', LOOK_UP);
    harness.supervisor.fakes.answer(ExecutionMeterService.method.freeze, () => {
      throw new UnavailableError('UNAVAILABLE', 'The peer is down.');
    });
    const order = { requestId: 'halt-0', scope: ofRun(), reason: REASON };
    // Long enough for the gateway to respond on a busy machine.
    await expect(control().halt(order, { timeoutMs: 2_500 })).rejects.toMatchObject({
      reason: 'HALT_PENDING',
      metadata: { waiting_for: 'execution-meter' },
    });
    clock.advance(60_000);
    const { runId } = agent.scope;
    const { run } = await harness.supervisor.runs().getRun({ runId });
    expect(run?.state).toBe(RunState.PARKED);
    harness.supervisor.fakes.answer(ExecutionMeterService.method.freeze, () => ({}));
    // The call may time out again, and the order is retried only when the manual clock advances.
    const inForce = await vi.waitFor(() => {
      clock.advance(1_000);
      return control().halt(order, { timeoutMs: 800 });
    });
    await resume(inForce.halt?.haltId);
    expect((await agent.propose('op-2', LOOK_UP)).stopReason).toBe('');
  });

  it('rejects the reviews, decisions and token refreshes of its agent immediately (SV-9)', async () => {
    await agent.propose('op-1', LOOK_UP);
    const created = await halt(ofAgent());
    await expect(agent.propose('op-2', LOOK_UP)).rejects.toMatchObject(HALTED);
    await expect(agent.propose('op-1', LOOK_UP)).rejects.toMatchObject(HALTED);
    await expect(agent.getDecision('op-1')).rejects.toMatchObject(HALTED);
    const worker = harness.supervisor.fakes.peer('agent-worker');
    const supervision = worker.client(SupervisionService, {
      audience: 'supervisor',
      address: harness.supervisor.service.address,
    });
    const options = await agent.options();
    await expect(supervision.refreshTokens({}, options)).rejects.toMatchObject(HALTED);
    await resume(created?.haltId);
    expect((await supervision.refreshTokens({}, options)).credentials).toBeDefined();
  });

  it('extends an approval by the time in which it could not be decided (SV-5, SV-9)', async () => {
    await harness.report(await agent.execute('op-1', LOOK_UP, { user: { id: 42 } }));
    await agent.propose('op-2', refund(1200));
    const pending = async () => (await harness.approvals().listApprovals({})).approvals[0];
    const before = await pending();
    const created = await halt();
    clock.advance(3_600_000);
    await resume(created?.haltId);
    const after = await pending();
    expect(Number(after?.expireTime?.seconds) - Number(before?.expireTime?.seconds)).toBe(3_600);
  });

  it('extends an approval by the whole time of overlapping halts (SV-5, SV-9)', async () => {
    await agent.propose('op-1', refund(1200));
    const expiry = async () => {
      const { approvals } = await harness.approvals().listApprovals({});
      return Number(approvals[0]?.expireTime?.seconds);
    };
    const before = await expiry();
    const first = await halt();
    clock.advance(300_000);
    const second = await halt(ofAgent());
    clock.advance(180_000);
    await resume(first?.haltId);
    clock.advance(60_000);
    await resume(second?.haltId);
    expect((await expiry()) - before).toBe(540);
    const outer = await halt();
    clock.advance(10_000);
    const inner = await halt(ofAgent());
    clock.advance(10_000);
    await resume(inner?.haltId);
    clock.advance(10_000);
    await resume(outer?.haltId);
    expect((await expiry()) - before).toBe(570);
  });

  it('prevents the expiry of approvals until its lift has extended them (SV-5, SV-9)', async () => {
    const { approvalId } = await agent.propose('op-1', refund(1200));
    const rejected = await agent.propose('op-2', refund(1300));
    const created = await halt();
    clock.advance(25 * 3_600_000);
    const secondStore = await openSecondStore(harness.supervisor);
    onTestFinished(() => secondStore.close());
    await rejectExtensions(secondStore);
    const lift = { requestId: 'lift', haltId: created?.haltId ?? '' };
    const resumed = control().resume(lift);
    resumed.catch(() => undefined);
    const resumeOrder = () =>
      secondStore.db
        .selectFrom('orders')
        .select('attempts')
        .where('kind', '=', 'resume')
        .executeTakeFirstOrThrow();
    await expect.poll(resumeOrder).toEqual({ attempts: 1 });
    const decide = (id: string, requestId: string, answer: typeof REJECT | typeof EDIT) =>
      harness.approvals('dora').decideApproval({ approvalId: id, requestId, answer });
    await expect(decide(approvalId, 'd-1', EDIT)).rejects.toMatchObject(HALTED);
    const { approval } = await decide(rejected.approvalId, 'd-2', REJECT);
    expect(approval?.state).toBe(ApprovalState.REJECTED);
    await acceptExtensions(secondStore);
    await control().resume(lift);
    expect((await decide(approvalId, 'd-3', EDIT)).approval?.state).toBe(ApprovalState.APPROVED);
  });

  it('does not delay the expiry of approvals outside its scope, even with many inside it (SV-5, SV-9)', async () => {
    await harness.report(await agent.execute('op-1', LOOK_UP, { user: { id: 42 } }));
    await agent.propose('op-2', refund(1200));
    const other = await harness.agent();
    await harness.report(await other.execute('op-1', LOOK_UP, { user: { id: 42 } }));
    await other.propose('op-2', refund(1200));
    await halt();
    // Inserts more approvals than one sweep reads; all of them expire before the approval of the other run.
    const secondStore = await openSecondStore(harness.supervisor);
    await secondStore.transaction(async (trx) => {
      const of = trx.selectFrom('approvals').selectAll().where('run_id', '=', agent.scope.runId);
      const row = await of.executeTakeFirstOrThrow();
      const more = Array.from({ length: 120 }, (_, index) => ({
        ...row,
        approval_id: `apr_${index}`,
        call_id: `op-${index + 10}`,
        expires_at: row.created_at,
      }));
      for (const each of more) await trx.insertInto('approvals').values(each).execute();
    });
    await secondStore.close();
    clock.advance(25 * 3_600_000);
    const stateOf = async (runId: string) => {
      const { approvals } = await harness.approvals().listApprovals({ runId, pageSize: 200 });
      return [...new Set(approvals.map(({ state }) => state))];
    };
    await expect
      .poll(() => stateOf(other.scope.runId), { interval: 10 })
      .toEqual([ApprovalState.EXPIRED]);
    expect(await stateOf(agent.scope.runId)).toEqual([ApprovalState.PENDING]);
  });

  it('is audited with its lift for each affected tenant when its scope is everything (SV-8, SV-9)', async () => {
    const { supervisor } = harness;
    const audited = async (person: 'anna' | 'eve' | 'olga') => {
      const { records } = await supervisor.as(person, AuditService).listAuditRecords({});
      return records.flatMap(({ kind }) => (/^(halt|resume)$/.test(kind) ? [kind] : []));
    };
    await harness.agent('refund-worker', 'eve');
    const scope = { kind: { case: 'everything', value: {} } } as const;
    const order = { requestId: 'halt-all', scope, reason: REASON, endRuns: true };
    const operator = supervisor.as('olga', ControlService);
    const { halt: ofAll } = await operator.halt(order);
    await harness.ended(agent);
    await expect
      .poll(async () => (await supervisor.runs('eve').listRuns({})).runs.map(({ state }) => state))
      .toEqual([RunState.HALTED]);
    clock.advance(60_000);
    await operator.resume({ requestId: 'resume-all', haltId: ofAll?.haltId ?? '' });
    for (const person of ['anna', 'eve', 'olga'] as const) {
      expect(await audited(person), person).toEqual(['halt', 'resume']);
    }
  });

  it('lists calls in flight that did not end (SV-9)', async () => {
    const call = create(InFlightCallSchema, {
      tenant: 'acme',
      runId: agent.scope.runId,
      callId: 'op-1',
      target: 'main',
    });
    harness.supervisor.fakes.answer(ExecutionMeterService.method.freeze, () => ({
      inFlight: [call],
    }));
    expect((await halt())?.inFlight).toMatchObject([{ callId: 'op-1', target: 'main' }]);
  });

  it('is idempotent by request_id, and halts are listed newest first, in pages (SV-9)', async () => {
    const order = { requestId: 'same', scope: ofRun(), reason: REASON };
    const first = await control().halt(order);
    expect((await control().halt(order)).halt?.haltId).toBe(first.halt?.haltId);
    await expect(control().halt({ ...order, reason: 'Other.' })).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
    clock.advance(1_000);
    const second = await halt();
    const page = await control().listHalts({ pageSize: 1 });
    expect(page.halts).toMatchObject([{ haltId: second?.haltId, state: HaltState.IN_FORCE }]);
    const { nextPageToken: pageToken } = page;
    const next = await control().listHalts({ pageSize: 1, pageToken });
    expect(next.halts).toMatchObject([{ haltId: first.halt?.haltId }]);
    expect((await control('eve').listHalts({})).halts).toEqual([]);
  });
});
