import type { WritClient } from '@writ/client';
import { HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ChatRole } from '@writ/contracts/writ/model/v1/model_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { newId } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { HaltHarness } from './halt-harness.ts';

const WHY = 'Refunds look wrong.';
const HALTED = {
  kind: 'failed_precondition',
  reason: 'HALTED',
  message: `Halted by developer: ${WHY}`,
};

let harness: HaltHarness;
let admin: WritClient;

beforeAll(async () => {
  harness = await HaltHarness.start();
  admin = await harness.client();
});
afterAll(() => harness.close());

type Scope = Parameters<WritClient['control']['halt']>[0]['scope'];

const ofRun = ({ tenant, runId }: Run): Scope => ({
  kind: { case: 'run', value: { tenant, runId } },
});
const TENANT: Scope = { kind: { case: 'tenant', value: 'default' } };

async function halt(scope: Scope, endRuns = false): Promise<string> {
  const { halt: created } = await admin.control.halt({
    requestId: newId('req'),
    scope,
    reason: WHY,
    endRuns,
  });
  expect(created).toMatchObject({
    state: HaltState.IN_FORCE,
    orderedBy: 'developer',
    inFlight: [],
  });
  return created?.haltId ?? '';
}

async function resume(haltId: string): Promise<void> {
  const { halt: lifted } = await admin.control.resume({ requestId: newId('req'), haltId });
  expect(lifted).toMatchObject({ state: HaltState.RESUMED, resumedBy: 'developer' });
}

async function stateOf({ runId }: Run): Promise<RunState | undefined> {
  return (await admin.runs.getRun({ runId })).run?.state;
}

async function ended({ runId }: Run): Promise<Run | undefined> {
  for await (const { event } of admin.runs.watchRun({ runId })) {
    if (event?.entry.case === 'result') break;
  }
  return (await admin.runs.getRun({ runId })).run;
}

async function pendingApproval({ runId }: Run): Promise<string> {
  return await vi.waitFor(async () => {
    const [approval] = (await admin.approvals.listApprovals({ runId })).approvals;
    if (approval === undefined) throw new Error('The run has no approval yet.');
    return approval.approvalId;
  });
}

function text(value: string) {
  return { case: 'text', value } as const;
}

describe('a halt', () => {
  it('refuses new runs, with its author and reason, until it is lifted (SV-9)', async () => {
    const haltId = await halt(TENANT);
    await expect(harness.run(admin, 'auto-1000')).rejects.toMatchObject(HALTED);
    expect((await admin.control.listHalts({ inForceOnly: true })).halts).toMatchObject([
      { haltId, reason: WHY },
    ]);
    await resume(haltId);
    expect((await ended(await harness.run(admin, 'auto-1000')))?.result?.stopReason).toBe(
      'success',
    );
  });

  it('aborts a model call and parks the agent, which resumes without loss (SV-9, EM-1, AG-7)', async () => {
    const run = await harness.run(admin, 'held-a');
    await harness.untilAsked('held-a');
    const haltId = await halt(ofRun(run));
    await harness.simulator.until(
      ({ script, outcome }) => script === 'held-a' && outcome === 'aborted',
    );
    expect(await stateOf(run)).toBe(RunState.PARKED);
    await resume(haltId);
    const over = await ended(run);
    expect(over?.result).toMatchObject({ stopReason: 'success', unverified: false });
    const events = await Array.fromAsync(admin.runs.watchRun({ runId: run.runId }));
    const halted = events.flatMap(({ event }) =>
      event?.entry.case === 'hook' && event.entry.value.type === HookEventType.HALTED
        ? [event.entry.value.haltId]
        : [],
    );
    expect(halted).toEqual([haltId]);
  });

  it('makes the gateway refuse an issued writ without voiding its call (SV-9, TG-8)', async () => {
    const run = await harness.run(admin, 'held-b');
    await harness.untilAsked('held-b');
    const { client, options } = await harness.worker(run);
    const reviews = await client(ReviewService, 'supervisor');
    const tools = await client(ToolGatewayService, 'tool-gateway');
    const text = '{"kind":"tool","name":"get_refund_context","args":{"user_id":42}}';
    const proposal = { case: 'rawText' as const, value: text };
    const review = (callId: string) => reviews.reviewAction({ callId, proposal }, options);
    const { decision } = await review('op-1');
    const action = decision?.executedAction?.kind;
    if (action?.case !== 'tool') throw new Error('The action was not approved.');
    const call = {
      call: {
        tenant: run.tenant,
        runId: run.runId,
        agentInstance: run.agent?.instance ?? '',
        callId: 'op-1',
      },
      tool: action.value.tool,
      argumentsJson: action.value.argumentsJson,
      writ: decision?.writ ?? '',
    };
    const first = await halt(ofRun(run));
    const second = await halt(TENANT);
    await expect(tools.callTool(call, options)).rejects.toMatchObject(HALTED);
    await expect(review('op-1')).rejects.toMatchObject(HALTED);
    await expect(review('op-2')).rejects.toMatchObject(HALTED);
    await resume(first);
    await expect(tools.callTool(call, options)).rejects.toMatchObject(HALTED);
    await resume(second);
    expect(await tools.callTool(call, options)).toMatchObject({ status: CallStatus.OK });
  });

  it('can be lifted without unfreezing a run that has ended (SV-9, SUP-8)', async () => {
    const run = await harness.run(admin, 'held-e');
    await harness.untilAsked('held-e');
    const { client, meterOptions } = await harness.worker(run);
    const models = await client(ModelService, 'execution-meter');
    const messages = [{ role: ChatRole.USER, parts: [{ kind: text('Continue.') }] }];
    const generate = (callId: string) => {
      const request = { callId, model: 'sim-held-e', messages };
      return Array.fromAsync(models.generate(request, meterOptions));
    };
    const haltId = await halt(ofRun(run));
    await expect(generate('other-1')).rejects.toMatchObject(HALTED);
    await admin.runs.cancelRun({ requestId: newId('req'), runId: run.runId });
    expect((await ended(run))?.result?.stopReason).toBe('cancelled');
    await expect(generate('other-2')).rejects.toMatchObject(HALTED);
    await resume(haltId);
    await expect(generate('other-3')).rejects.toMatchObject({ reason: 'FROZEN' });
  });

  it('refuses human decisions, and keeps the approval pending for a decision after the halt (SV-5, SV-9)', async () => {
    const run = await harness.run(admin, 'escalate-1200');
    const approvalId = await pendingApproval(run);
    const decide = () =>
      admin.approvals.decideApproval({
        requestId: newId('req'),
        approvalId,
        answer: {
          case: 'approveWithEdits',
          value: { changesJson: '{"amount_usd":800}' },
        },
      });
    const haltId = await halt(ofRun(run));
    expect(await stateOf(run)).toBe(RunState.PARKED);
    await expect(decide()).rejects.toMatchObject(HALTED);
    await resume(haltId);
    expect(await stateOf(run)).toBe(RunState.SUSPENDED);
    await decide();
    expect((await ended(run))?.result?.stopReason).toBe('success');
  });

  it('ends its runs as HALTED when requested, and at their deadline (SV-9, RT-4)', async () => {
    const ending = await harness.run(admin, 'held-c');
    await harness.untilAsked('held-c');
    const haltId = await halt(ofRun(ending), true);
    expect(await ended(ending)).toMatchObject({
      state: RunState.HALTED,
      result: { stopReason: 'halted' },
    });
    await resume(haltId);
    const late = await harness.run(admin, 'held-d', 900);
    await harness.untilAsked('held-d');
    const other = await halt(ofRun(late));
    expect(await ended(late)).toMatchObject({ state: RunState.HALTED });
    await resume(other);
  });

  it('can be ordered for other tenants, and lifted there, only by an operator (SV-9, SYS-6)', async () => {
    const run = await harness.run(admin, 'auto-1000');
    await ended(run);
    const local = await harness.client({ subject: 'ada', tenant: 'default', roles: ['admin'] });
    const other = await harness.client({ subject: 'eve', tenant: 'rivals', roles: ['admin'] });
    const order = (scope: Scope) => ({ requestId: newId('req'), scope, reason: WHY });
    const everything: Scope = { kind: { case: 'everything', value: {} } };
    await expect(other.control.halt(order(ofRun(run)))).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
    const denied = { kind: 'permission_denied', reason: 'OPERATOR_REQUIRED' };
    await expect(other.control.halt(order(TENANT))).rejects.toMatchObject(denied);
    await expect(local.control.halt(order(everything))).rejects.toMatchObject(denied);
    const ofTenant = await halt(TENANT);
    const lift = { requestId: newId('req'), haltId: ofTenant };
    await expect(other.control.resume(lift)).rejects.toMatchObject({ reason: 'HALT_NOT_FOUND' });
    const ofAll = await halt(everything);
    await expect(
      local.control.resume({ requestId: newId('req'), haltId: ofAll }),
    ).rejects.toMatchObject(denied);
    await expect(harness.run(other, 'auto-1000')).rejects.toMatchObject(HALTED);
    expect((await other.control.listHalts({})).halts.map(({ haltId }) => haltId)).toEqual([ofAll]);
    await resume(ofAll);
    await local.control.resume(lift);
  });
});
