import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { type Decision, Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { createVerifier, internalGate, trustSigners } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import type { CallOptions, RpcClient } from '@writ/rpc';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FakeSupervisor } from '../../services/agent-worker/test/fake-supervisor.ts';
import { FaultSwitches } from '../../services/agent-worker/test/fault-switches.ts';
import {
  finalText,
  LOOK_UP,
  type Proposal,
  RefundHarness,
  refund,
} from '../../services/supervisor/test/refund-harness.ts';

/** The supervisor as the worker of one agent sees it. */
class Supervisor {
  readonly reviews: RpcClient<typeof ReviewService>;
  readonly supervision: RpcClient<typeof SupervisionService>;
  readonly options: () => Promise<CallOptions>;

  constructor(
    reviews: RpcClient<typeof ReviewService>,
    supervision: RpcClient<typeof SupervisionService>,
    options: () => Promise<CallOptions>,
  ) {
    this.reviews = reviews;
    this.supervision = supervision;
    this.options = options;
  }

  async propose(callId: string, proposal: Proposal): Promise<Decision> {
    const response = await this.reviews.reviewAction({ ...proposal, callId }, await this.options());
    return given(response.decision);
  }

  async decision(callId: string): Promise<Decision> {
    return given((await this.reviews.getDecision({ callId }, await this.options())).decision);
  }

  async report(stopReason: string): Promise<string> {
    const outcome = { requestId: `report-${stopReason}`, stopReason, phase: 'worker' };
    const recorded = await this.supervision.reportOutcome(outcome, await this.options());
    return recorded.stopReason;
  }
}

async function realSupervisor(): Promise<Supervisor> {
  const harness = await RefundHarness.start();
  onTestFinished(() => harness.close());
  const agent = await harness.agent();
  const { fakes, service } = harness.supervisor;
  const to = { audience: 'supervisor', address: service.address } as const;
  const supervision = fakes.peer('agent-worker').client(SupervisionService, to);
  return new Supervisor(agent.reviews, supervision, () => agent.options());
}

async function fakeSupervisor(): Promise<Supervisor> {
  const fake = new FakeSupervisor(new FaultSwitches());
  const issuer = await startKeyPeer('supervisor');
  const spawnBudget = await startKeyPeer('spawn-budget');
  const worker = await startKeyPeer('agent-worker');
  const trust = trustSigners(issuer.signer, worker.signer, spawnBudget.signer);
  const verifier = createVerifier({ trust, clock: systemClock });
  const gate = internalGate({ service: 'supervisor', verifier, enforceSlotGrants: true });
  const peer = await startKeyPeer('supervisor', { routes: fake.routes(), gate });
  onTestFinished(async () => {
    for (const each of [issuer, spawnBudget, worker, peer]) await each.close();
  });
  const to = { audience: 'supervisor', address: peer.address } as const;
  const scope = { tenant: 'acme', runId: 'run-1' };
  const agent = { name: 'refund-desk', instance: 'refund-desk-1' };
  const { supervisorToken: agentToken } = await issuer.agentCredentials({ ...scope, agent });
  const options = async () => ({
    agentToken,
    slotGrant: await spawnBudget.slotGrant({
      ...scope,
      agentInstance: agent.instance,
      epoch: 1n,
    }),
    epoch: 1n,
  });
  return new Supervisor(
    worker.client(ReviewService, to),
    worker.client(SupervisionService, to),
    options,
  );
}

describe.each([
  ['the supervisor', realSupervisor],
  ["the worker's fake supervisor", fakeSupervisor],
])('a review of %s', (_, start) => {
  it('approves a call with a writ, and a repeat with another writ of the same decision (SV-1, SV-6)', async () => {
    const supervisor = await start();
    const decision = await supervisor.propose('op-1', LOOK_UP);
    expect(decision).toMatchObject({
      callId: 'op-1',
      verdict: Verdict.APPROVE,
      settled: true,
      runEnded: false,
      stopReason: '',
      approvalId: '',
      executedFrom: ExecutedFrom.ORIGINAL,
    });
    expect(decision.writ).not.toBe('');
    expect(decision.writExpireTime).toBeDefined();
    expect(decision.executedAction?.kind.value).toEqual(decision.action?.kind.value);
    const { decisionId } = decision;
    for (const again of [
      await supervisor.propose('op-1', LOOK_UP),
      await supervisor.decision('op-1'),
    ]) {
      expect(again).toMatchObject({ decisionId, verdict: Verdict.APPROVE, settled: true });
      expect(again.writ).not.toBe('');
    }
  });

  it('rejects a call_id that was used for another action, and an unknown one (SV-1)', async () => {
    const supervisor = await start();
    await supervisor.propose('op-1', LOOK_UP);
    await expect(supervisor.propose('op-1', refund(5))).rejects.toMatchObject({
      kind: 'invalid_argument',
      reason: 'CALL_ID_REUSED',
    });
    await expect(supervisor.decision('op-2')).rejects.toMatchObject({
      kind: 'not_found',
      reason: 'DECISION_NOT_FOUND',
    });
  });

  it('blocks with the stop reason of the rule, and without a writ (SV-1, SV-4)', async () => {
    const supervisor = await start();
    expect(await supervisor.propose('op-1', finalText('Done.'))).toMatchObject({
      verdict: Verdict.BLOCK,
      reason: 'final_requires_context',
      stopReason: 'supervisor_block:final_requires_context',
      writ: '',
      settled: true,
      runEnded: false,
    });
  });

  it('reports the error of an action that cannot be parsed (SV-2)', async () => {
    const supervisor = await start();
    const text: Proposal = { proposal: { case: 'rawText', value: 'I would rather not.' } };
    expect(await supervisor.propose('op-1', text)).toMatchObject({
      verdict: Verdict.INVALID,
      reason: 'non_json',
      stopReason: 'invalid_action:non_json',
      writ: '',
      settled: true,
    });
  });

  it('escalates without a writ, until a person decides (SV-5)', async () => {
    const supervisor = await start();
    await supervisor.propose('op-1', LOOK_UP);
    const decision = await supervisor.propose('op-2', refund(1500));
    expect(decision).toMatchObject({
      verdict: Verdict.ESCALATE,
      reason: 'high_refund_requires_human',
      settled: false,
      writ: '',
      stopReason: '',
    });
    expect(decision.approvalId).not.toBe('');
    expect(await supervisor.decision('op-2')).toMatchObject({ settled: false, writ: '' });
  });

  it('keeps the first reported end (AG-7)', async () => {
    const supervisor = await start();
    expect(await supervisor.report('llm_timeout')).toBe('llm_timeout');
    expect(await supervisor.report('stuck')).toBe('llm_timeout');
  });
});

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('The response has no decision.');
  return value;
}
