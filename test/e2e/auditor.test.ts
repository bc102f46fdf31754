import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { DescService } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { createWritClient } from '@writ/client';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

/** The services of the public port. */
const SERVICES: readonly DescService[] = [
  ApprovalService,
  AuditService,
  CallerService,
  ControlService,
  KeyService,
  RunService,
  UsageService,
];
const BUF = resolve(import.meta.dirname, '../../node_modules/.bin/buf');
const READS = /^(Get|List|Query|Watch|Export)/;
/** RPCs that every person may call: they return the identity of the caller, and the keys that verify an export. */
const OPEN = ['GetCaller', 'GetKeys'];

let test: TestPlatform;
beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

async function keyOf(role: 'auditor' | 'approver'): Promise<string> {
  const keys = openApiKeys({ file: join(test.dataDir, API_KEYS_FILE) });
  return await keys.create({ subject: 'ada', tenant: 'default', roles: [role] });
}

it('lets an auditor read who approved what, but not decide (PE-1, SV-5, SV-8)', async () => {
  const baseUrl = test.platform.edgeUrl;
  const apiKey = await keyOf('auditor');
  const { runs, approvals, audit, usage, control } = createWritClient({ baseUrl, apiKey });
  const { run: started } = await test.client.runs.startRun({
    requestId: 'audited',
    agent: 'refund-worker',
    goal: 'Refund order 7.',
    model: 'sim-escalate-1200',
  });
  const runId = started?.runId ?? '';
  const approval = await vi.waitFor(async () => {
    const page = await approvals.listApprovals({ states: [ApprovalState.PENDING] });
    expect(page.approvals).toHaveLength(1);
    return page.approvals[0];
  });
  expect(approval).toMatchObject({ runId, caps: [], editableArguments: [] });
  expect(approval?.readerRights).toMatchObject({
    mayApprove: false,
    mayEdit: false,
    refusal: 'A decision requires the role approver or admin.',
  });
  const { approvalId = '' } = approval ?? {};
  const reject = { requestId: 'no', approvalId, answer: { case: 'reject', value: {} } } as const;
  await expect(approvals.decideApproval(reject)).rejects.toMatchObject({ reason: 'ROLE_REQUIRED' });
  await test.client.approvals.decideApproval(reject);
  for await (const { event } of runs.watchRun({ runId })) expect(event).toBeDefined();
  expect((await runs.getRun({ runId })).run?.result?.stopReason).toBe('human_rejected');
  expect((await approvals.getApproval({ approvalId })).approval).toMatchObject({
    humanApproval: { approved: false, decidedBy: 'developer' },
  });
  expect((await runs.listRuns({})).runs.map((one) => one.runId)).toEqual([runId]);
  expect((await usage.queryUsage({})).rows).toHaveLength(1);
  expect((await control.listHalts({})).halts).toEqual([]);
  const { records } = await audit.listAuditRecords({ runId });
  expect(records.length).toBeGreaterThan(3);
});

it('covers every service that the public port lists in server reflection (SYS-2)', async () => {
  const args = ['--protocol', 'grpc', '--http2-prior-knowledge', '--list-services'];
  const { stdout } = await promisify(execFile)(BUF, ['curl', ...args, test.platform.edgeUrl]);
  const named = stdout.split('\n').filter((name) => name.startsWith('writ.'));
  expect(named.toSorted()).toEqual(SERVICES.map(({ typeName }) => typeName).toSorted());
});

it('denies an auditor every RPC that changes state, and no RPC that reads (PE-1, SYS-6)', async () => {
  const { permitted, denied } = await triedAs('auditor');
  expect(permitted.filter((name) => !READS.test(name))).toEqual([]);
  expect(denied.filter((name) => READS.test(name))).toEqual([]);
  expect(denied.length).toBeGreaterThanOrEqual(8);
});

it('permits an approver only the approval RPCs and the RPCs that are open to every person (SV-5, SYS-6)', async () => {
  const { permitted } = await triedAs('approver');
  const approvals = ['ListApprovals', 'GetApproval', 'DecideApproval', 'WatchApprovals'];
  expect(permitted.toSorted()).toEqual([...approvals, ...OPEN].toSorted());
});

/** Calls all public RPCs as a person with this role only; returns the names of the permitted and of the denied RPCs. */
async function triedAs(role: 'auditor' | 'approver') {
  const apiKey = await keyOf(role);
  const transport = createConnectTransport({
    baseUrl: test.platform.edgeUrl,
    httpVersion: '1.1',
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${apiKey}`);
        return next(request);
      },
    ],
  });
  // Makes the calls concurrently, because a permitted watch without events ends only at its timeout.
  const calls = SERVICES.flatMap((service) => {
    const client = createClient(service, transport) as Record<
      string,
      (request: object, options?: object) => unknown
    >;
    return service.methods.map(async ({ name, localName }) => ({
      name,
      isDenied: await isDeniedByRole(client[localName]?.({}, { timeoutMs: 2_000 })),
    }));
  });
  const answers = await Promise.all(calls);
  const namesOf = (denied: boolean) =>
    answers.filter(({ isDenied }) => isDenied === denied).map(({ name }) => name);
  return { denied: namesOf(true), permitted: namesOf(false) };
}

/**
 * Returns whether a call is denied because of the role. The role is checked first: other errors, such as a missing id,
 * mean that the call is permitted.
 */
async function isDeniedByRole(call: unknown): Promise<boolean> {
  try {
    if (call instanceof Promise) await call;
    else for await (const _ of call as AsyncIterable<unknown>) break;
    return false;
  } catch (error) {
    return String(error).includes('requires the role');
  }
}
