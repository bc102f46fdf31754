import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type AuditRecord, AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { canonicalJson, sha256Hex } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { exportLines, verifyWith } from './audit-export.ts';
import {
  CONTEXT,
  finalText,
  LOOK_UP,
  RefundHarness,
  refund,
  type TestAgent,
} from './refund-harness.ts';

const CHECKPOINT_EVERY = 4;

describe('the audit log of one run', () => {
  let harness: RefundHarness;
  let agent: TestAgent;

  /** One run with a look-up, a refund that a person approves in part, and a final answer. */
  beforeAll(async () => {
    harness = await RefundHarness.start({ config: { auditCheckpointRecords: CHECKPOINT_EVERY } });
    agent = await harness.agent();
    const { fakes } = harness.supervisor;
    const lookupReceipt = await agent.execute('op-1', LOOK_UP, CONTEXT);
    const { approvalId } = await agent.propose('op-2', refund(1200), { receipts: [lookupReceipt] });
    const value = { argumentsJson: '{"user_id":42,"amount_usd":800,"reason":"Paid twice."}' };
    const answer = { case: 'approveWithEdits', value } as const;
    const comment = 'Only this much.';
    await harness
      .approvals('dora')
      .decideApproval({ approvalId, requestId: 'd-1', answer, comment });
    await fakes.called(AgentWorkerService.method.signal);
    const [signal] = fakes.requests(AgentWorkerService.method.signal);
    const decision = signal?.approval?.decision;
    if (decision === undefined) throw new Error('The signal has no decision.');
    const refunded = { status: 'ok', refund: { amount_usd: 800 } };
    const receipts = [await agent.receipt(decision, refunded)];
    await agent.propose('op-3', finalText('A secret answer.'), { receipts });
    await harness.ended(agent);
  });
  afterAll(() => harness.close());

  const audit = (person: 'anna' | 'boris' | 'eve' = 'anna') =>
    harness.supervisor.as(person, AuditService);
  const all = async (): Promise<AuditRecord[]> => (await audit().listAuditRecords({})).records;

  it('contains the run from start to end in one chain without gaps (SV-8)', async () => {
    const records = await all();
    expect(records.map(({ kind, callId }) => [kind, callId].filter(Boolean).join(' '))).toEqual([
      'run_started',
      'decision op-1',
      'receipt op-1',
      'decision op-2',
      'approval op-2',
      'approval op-2',
      'writ op-2',
      'receipt op-2',
      'decision op-3',
      'agent_ended op-3',
      'run_ended',
    ]);
    expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, n) => BigInt(n + 1)));
    let previous = '0'.repeat(64);
    for (const { previousHash, hash, canonicalJson: text } of records) {
      expect(previousHash).toBe(previous);
      expect(hash).toBe(sha256Hex(previous + text));
      expect(canonicalJson(JSON.parse(text))).toBe(text);
      previous = hash;
    }
  });

  it('records the proposal, the rule, the approver, the execution and the outcome of each action (SV-8)', async () => {
    const facts = (await all()).map(({ canonicalJson: text }) => JSON.parse(text));
    const [started, looked, receipt, escalated, opened, decided, writ, paid, final, ended, over] =
      facts;
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(started).toMatchObject({ started_by: 'anna', agent: 'refund-worker' });
    expect(looked).toMatchObject({
      action_digest: digest,
      verdict: 'approve',
      rule: expect.any(String),
      policy_version: expect.any(String),
      writ_id: expect.stringMatching(/^writ_/),
    });
    expect(receipt).toMatchObject({ status: 'ok', result_sha256: digest });
    expect(escalated).toMatchObject({ verdict: 'escalate', approval_id: opened.approval_id });
    expect(opened).toMatchObject({
      state: 'pending',
      rule: 'refund-needs-a-person',
      asked: 'action',
    });
    expect(decided).toMatchObject({ state: 'approved', approver: 'dora', executed_digest: digest });
    expect(decided.comment_sha256).toBe(sha256Hex('Only this much.'));
    expect(writ).toMatchObject({
      decision_id: escalated.decision_id,
      executed_from: 'human_revised',
      args_sha256: paid.args_sha256,
    });
    expect(paid).toMatchObject({ tool: 'issue_refund', receipt_id: expect.any(String) });
    expect(final).toMatchObject({ action_name: 'final' });
    expect(ended).toMatchObject({ stop_reason: 'success', answer_sha256: digest });
    expect(over).toMatchObject({ stop_reason: 'success' });
  });

  it('contains ids and digests but no content (SV-8)', async () => {
    const text = (await all()).map((record) => record.canonicalJson).join('\n');
    expect(text).not.toMatch(/secret|Paid twice|Only this much|Refund it|amount_usd/);
  });

  it('is exported with its checkpoints in order and verified offline (SV-8)', async () => {
    const { dataDir } = harness.supervisor.config;
    // The chainer signs a checkpoint after it has linked the records.
    const lines = await vi.waitFor(async () => {
      const exported = await exportLines(harness.supervisor);
      expect(exported.some((line) => line.includes('"type":"checkpoint"'))).toBe(true);
      return exported;
    });
    const verdict = await verifyWith(dataDir, lines);
    expect(verdict).toMatchObject({ holds: true, tenant: 'acme', records: 11 });
    for (const [index, line] of lines.entries()) {
      const changed = line.replace(/[0-9](?=[^0-9]*$)/, (digit) =>
        String((Number(digit) + 1) % 10),
      );
      expect(await verifyWith(dataDir, lines.with(index, changed))).toMatchObject({ holds: false });
      expect(await verifyWith(dataDir, lines.toSpliced(index, 1))).toMatchObject({ holds: false });
    }
  });

  it('is exported from any record onward (SV-8)', async () => {
    const { dataDir } = harness.supervisor.config;
    for (const after of [1, 3, 4, 5, 11]) {
      const part = await exportLines(harness.supervisor, 'anna', BigInt(after));
      expect(await verifyWith(dataDir, part, after)).toMatchObject({
        holds: true,
        records: 11 - after,
      });
    }
    await expect(exportLines(harness.supervisor, 'anna', 12n)).rejects.toMatchObject({
      reason: 'AUDIT_RECORD_NOT_FOUND',
    });
  });

  it('is filtered by run, agent, kind, position and time, and read in pages (SV-8)', async () => {
    const records = await all();
    const { runId, agentInstance } = agent.scope;
    const count = async (filter: Parameters<ReturnType<typeof audit>['listAuditRecords']>[0]) =>
      (await audit().listAuditRecords(filter)).records.length;
    expect(await count({ kind: 'decision' })).toBe(3);
    expect(await count({ runId, agentInstance, kind: 'receipt' })).toBe(2);
    expect(await count({ runId: 'run_0' })).toBe(0);
    expect(await count({ agentInstance: 'unknown' })).toBe(0);
    expect(await count({ afterSequence: 9n })).toBe(2);
    const at = records[5]?.recordTime;
    if (at === undefined) throw new Error('The record has no time.');
    const before = await count({ endTime: at });
    expect(before).toBeLessThan(6);
    expect((await count({ startTime: at })) + before).toBe(11);
    const paged: AuditRecord[] = [];
    let pageToken = '';
    do {
      const page = await audit().listAuditRecords({ pageSize: 4, pageToken });
      paged.push(...page.records);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(paged).toEqual(records);
    const { nextPageToken } = await audit().listAuditRecords({ pageSize: 4 });
    await expect(
      audit().listAuditRecords({ pageToken: nextPageToken, kind: 'writ' }),
    ).rejects.toMatchObject({ reason: 'INVALID_PAGE_TOKEN' });
  });

  it('is readable by admins of the same tenant only (SV-8, SYS-6)', async () => {
    await expect(audit('boris').listAuditRecords({})).rejects.toMatchObject({
      reason: 'ROLE_REQUIRED',
    });
    await expect(exportLines(harness.supervisor, 'boris')).rejects.toMatchObject({
      reason: 'ROLE_REQUIRED',
    });
    const { runId } = agent.scope;
    expect((await audit('eve').listAuditRecords({ runId })).records).toEqual([]);
    const otherTenant = await exportLines(harness.supervisor, 'eve');
    expect(await verifyWith(harness.supervisor.config.dataDir, otherTenant)).toMatchObject({
      holds: true,
      tenant: 'rivals',
      records: 0,
    });
  });

  it('records a refusal of the gateway once, also when it is reported twice (TG-1, SV-8)', async () => {
    const gateway = harness.supervisor.fakes.peer('tool-gateway').client(SupervisionService, {
      audience: 'supervisor',
      address: harness.supervisor.service.address,
    });
    const refusal = {
      refusalId: 'ref_1',
      tenant: 'rivals',
      runId: 'run-9',
      agentInstance: 'worker-9',
      callId: 'op-9',
      reason: 'WRIT_MISMATCH',
      field: 'args_sha256',
      writSha256: 'b'.repeat(64),
      presentedBy: 'worker-1',
      refuseTime: timestampFromDate(new Date()),
    };
    const refusals = [
      refusal,
      { ...refusal, refusalId: 'ref_2', reason: 'WRIT_EXPIRED', field: '' },
    ];
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { acknowledgedRefusalIds } = await gateway.reportReceipts({ receipts: [], refusals });
      expect(acknowledgedRefusalIds).toEqual(['ref_1', 'ref_2']);
    }
    const { records } = await audit('eve').listAuditRecords({ kind: 'refusal' });
    expect(records.map((record) => JSON.parse(record.canonicalJson))).toMatchObject([
      {
        refusal_id: 'ref_1',
        run_id: 'run-9',
        agent_instance: 'worker-9',
        call_id: 'op-9',
        reason: 'WRIT_MISMATCH',
        field: 'args_sha256',
        presented_by: 'worker-1',
      },
      { refusal_id: 'ref_2', reason: 'WRIT_EXPIRED' },
    ]);
  });
});
