import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Approval, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCli } from '../src/cli.ts';
import { EXIT } from '../src/io.ts';

const GOAL = 'Refund 250 USD to user 42, who was charged twice.';

describe('writ recover', () => {
  let dataDir: string;
  let test: TestPlatform | undefined;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'writ-recover-'));
  });
  afterEach(async () => {
    await test?.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const start = async (): Promise<TestPlatform> => {
    test = await startTestPlatform({ dataDir });
    return test;
  };
  const stop = async (): Promise<void> => {
    await test?.close();
    test = undefined;
  };
  const writ = async (...args: readonly string[]) => {
    const out: string[] = [];
    const print = (line: string) => void out.push(line);
    const { edgeUrl = '', apiKey = '' } = test?.platform ?? {};
    const env = { WRIT_DATA: dataDir, WRIT_ADDRESS: edgeUrl, WRIT_API_KEY: apiKey };
    const exit = await runCli(args, { env, print, warn: print });
    return { exit, out: out.join('\n') };
  };
  /** Starts a run that waits for an approval. */
  const startWaiting = async ({ client }: TestPlatform, requestId: string): Promise<string> => {
    const { run } = await client.runs.startRun({ requestId, agent: 'refund-worker', goal: GOAL });
    const { runId = '' } = run ?? {};
    await vi.waitFor(async () => expect(await pending(runId)).toBeDefined());
    return runId;
  };
  const pending = async (runId: string): Promise<Approval | undefined> => {
    const states = [ApprovalState.PENDING];
    const { approvals = [] } =
      (await test?.client.approvals.listApprovals({ states, runId })) ?? {};
    return approvals[0];
  };
  const ended = async ({ client }: TestPlatform, runId: string): Promise<RunState | undefined> => {
    await vi.waitFor(async () => {
      const { run } = await client.runs.getRun({ runId });
      expect(run?.endTime).toBeDefined();
    });
    return (await client.runs.getRun({ runId })).run?.state;
  };
  const approve = async (
    { client }: TestPlatform,
    runId: string,
  ): Promise<RunState | undefined> => {
    const { approvalId = '', action } = (await pending(runId)) ?? {};
    const args = action?.kind.case === 'tool' ? action.kind.value.argumentsJson : '{}';
    const value = { argumentsJson: JSON.stringify({ ...JSON.parse(args), amount_usd: 800 }) };
    const answer = { case: 'approveWithEdits', value } as const;
    await client.approvals.decideApproval({ approvalId, requestId: `d-${runId}`, answer });
    return await ended({ client } as TestPlatform, runId);
  };

  it('finds nothing to recover if the databases are current (BD-4)', async () => {
    await start();
    await stop();
    const report = await writ('recover');
    expect(report.exit).toBe(EXIT.success);
    expect(report.out).toMatch(
      /supervisor: .*supervisor\.db is current; the service last recorded mark \d+/,
    );
    expect(report.out).toMatch(/Nothing to recover/);
    expect((await writ('recover', '--service', 'no-service')).exit).toBe(EXIT.error);
    await start();
  });

  it('halts everything and ends unfinished runs after a copy is restored (BD-4, SV-9)', async () => {
    const before = await start();
    const runId = await startWaiting(before, 'r-1');
    await stop();
    copyFileSync(join(dataDir, 'supervisor.db'), join(dataDir, 'copy.db'));
    // The refund is paid after the copy was created; in the copy, its approval is still pending.
    expect(await approve(await start(), runId)).toBe(RunState.COMPLETED);
    await stop();
    copyFileSync(join(dataDir, 'copy.db'), join(dataDir, 'supervisor.db'));

    await expect(start()).rejects.toMatchObject({
      reason: 'STORE_BEHIND',
      message: expect.stringMatching(/supervisor\.db went back in time.*run `writ recover`/),
    });
    const report = await writ('recover');
    expect(report).toMatchObject({
      exit: EXIT.failure,
      out: expect.stringMatching(
        /supervisor: .* is an older copy with mark \d+; the service last recorded mark/,
      ),
    });
    await expect(start()).rejects.toMatchObject({ reason: 'STORE_BEHIND' });
    const ordered = await writ('recover', '--yes');
    expect(ordered.exit).toBe(EXIT.success);
    const [, haltId = ''] = /writ halts lift (hlt_\S+)/.exec(ordered.out) ?? [];

    const after = await start();
    expect(await ended(after, runId)).toBe(RunState.HALTED);
    expect((await writ('halts', 'list', '--in-force')).out).toContain(haltId);
    const started = after.client.runs.startRun({
      requestId: 'r-2',
      agent: 'refund-worker',
      goal: GOAL,
    });
    await expect(started).rejects.toThrow(/halt/i);
    expect((await writ('recover')).exit).toBe(EXIT.success);
    expect((await writ('halts', 'lift', haltId)).exit).toBe(EXIT.success);
    const next = await startWaiting(after, 'r-3');
    expect(await approve(after, next)).toBe(RunState.COMPLETED);
    await stop();
    await start();
  });

  it('recovers from an emptied database file (BD-4)', async () => {
    const before = await start();
    const runId = await startWaiting(before, 'r-1');
    await stop();
    truncateSync(join(dataDir, 'tool-gateway.db'), 0);
    await expect(start()).rejects.toMatchObject({
      reason: 'STORE_EMPTIED',
      message: expect.stringMatching(/tool-gateway\.db, the database of tool-gateway, is empty/),
    });
    const ordered = await writ('recover', '--yes');
    expect(ordered.out).toMatch(/tool-gateway: .*tool-gateway\.db is empty/);
    const after = await start();
    expect(await ended(after, runId)).toBe(RunState.HALTED);
    const [, haltId = ''] = /writ halts lift (hlt_\S+)/.exec(ordered.out) ?? [];
    expect((await writ('halts', 'lift', haltId)).exit).toBe(EXIT.success);
    const next = await startWaiting(after, 'r-2');
    expect(await approve(after, next)).toBe(RunState.COMPLETED);
  });

  it('rejects a service without a marker and orders no recovery (BD-4)', async () => {
    const folder = join(dataDir, 'keys');
    const rejected = {
      exit: EXIT.error,
      out: expect.stringContaining(join(folder, 'execution-meter.store.json')),
    };
    expect(await writ('recover', '--service', 'execution-meter', '--yes')).toMatchObject(rejected);
    const seen = { service: 'supervisor', store: 'supervisor.db', generation: 'g', mark: 1 };
    const marker = JSON.stringify({ ...seen, seenAt: '2026-01-01T00:00:00.000Z' });
    const file = join(folder, 'supervisor.store.json');
    mkdirSync(folder);
    writeFileSync(file, marker);
    const both = await writ('recover', '--service', 'supervisor', 'execution-meter', '--yes');
    expect(both).toMatchObject(rejected);
    expect(readFileSync(file, 'utf8')).toBe(marker);
  });

  it('reports a database that cannot be opened, without calling it corrupt (BD-4)', async () => {
    await start();
    await stop();
    const file = join(dataDir, 'supervisor.db');
    rmSync(file);
    mkdirSync(join(file, 'folder'), { recursive: true });
    const { exit, out } = await writ('recover');
    expect(exit).toBe(EXIT.error);
    expect(out).toContain('supervisor.db cannot be opened, read or written');
  });
});
