import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { API_KEYS_FILE, openApiKeys, openSigner } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { describe, expect, it } from 'vitest';
import { allSnippets, exemptionOf, type Snippet } from '../../scripts/checks/snippets.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Files and folders of a checkout that the commands use. */
const FOLDERS = ['node_modules', 'examples', 'deploy', 'clients', 'docs', 'proto', 'package.json'];

/**
 * Pages whose commands watch the run to its end. For these pages, the test also approves the pending action of the run,
 * in the background.
 */
const FOLLOWING = ['docs/how-to/debug-a-run.md', 'docs/how-to/watch-over-http.md'];

const pages = Map.groupBy(
  allSnippets().filter((each) => each.language === 'sh' && exemptionOf(each) === undefined),
  ({ page }) => page,
);

describe('the commands of README.md and docs/', () => {
  it.each([...pages])(
    'succeed on a running platform, in the order of the page: %s (PE-2, PE-3)',
    { timeout: 300_000 },
    async (page, blocks) => {
      const test = await startTestPlatform();
      const folder = checkoutOf(test);
      try {
        const variables = await variablesOf(test, FOLLOWING.includes(page));
        const { code, output } = await runInBash(scriptOf(blocks, test), folder, variables);
        expect(code, output).toBe(0);
        for (const { line } of blocks) expect(output).toContain(`${page}:${line}`);
      } finally {
        await test.close();
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  it('fail the test when the API refuses a request', { timeout: 120_000 }, async () => {
    const test = await startTestPlatform();
    const folder = checkoutOf(test);
    try {
      const text = 'curl -s http://127.0.0.1:8080/writ.run.v1.RunService/ListRuns -d {}\n';
      const script = scriptOf([{ page: 'p.md', line: 1, language: 'sh', text }], test);
      const { code, output } = await runInBash(script, folder, {});
      expect(code, output).not.toBe(0);
    } finally {
      await test.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/**
 * Creates a folder like a checkout in which `npm start` runs, with a curl that fails when the server refuses a request.
 */
function checkoutOf({ dataDir }: TestPlatform): string {
  const folder = mkdtempSync(join(tmpdir(), 'documented-'));
  for (const name of FOLDERS) symlinkSync(join(ROOT, name), join(folder, name));
  symlinkSync(dataDir, join(folder, '.writ'));
  mkdirSync(join(folder, 'bin'));
  const curl = join(folder, 'bin/curl');
  writeFileSync(curl, '#!/bin/sh\nexec /usr/bin/curl --fail-with-body "$@"\n');
  chmodSync(curl, 0o755);
  return folder;
}

/** The blocks as one script that stops at the first command that fails; 8080 is the port of the platform. */
function scriptOf(blocks: readonly Snippet[], { platform }: TestPlatform): string {
  const { host } = new URL(platform.edgeUrl);
  const lines = blocks.flatMap(({ page, line, text }) => [
    `echo '### ${page}:${line}'`,
    text.replaceAll('127.0.0.1:8080', host),
  ]);
  return ['set -euo pipefail', ...lines].join('\n');
}

/**
 * Returns the shell variables that pages use, such as the ids of a run and of a halt, and a key. The run waits for an
 * approval unless `isDecided`.
 */
async function variablesOf(
  test: TestPlatform,
  isDecided: boolean,
): Promise<Readonly<Record<string, string>>> {
  const { client, platform } = test;
  const { run } = await client.runs.startRun({
    requestId: 'documented',
    agent: 'refund-worker',
    goal: 'Refund user 42.',
  });
  const { runId = '', sessionId = '' } = run ?? {};
  const approvalId = await pendingApproval(test, runId);
  void approveOthers(test, isDecided ? '' : approvalId);
  const { agents } = await client.runs.listRunAgents({ runId });
  const { halt } = await client.control.halt({
    requestId: 'documented-halt',
    reason: 'A halt that a page lifts.',
    scope: { kind: { case: 'tenant', value: 'other' } },
  });
  const keys = openApiKeys({ file: join(test.dataDir, API_KEYS_FILE) });
  const key = await keys.create({ tenant: 'acme', subject: 'ada', roles: ['caller'] });
  const keyDir = join(test.dataDir, 'keys');
  const signer = await openSigner({ service: 'tool-gateway', keyDir, clock: systemClock });
  return {
    WRIT_ADDRESS: platform.edgeUrl,
    WRIT_SUPERVISOR_ADDRESS: platform.addresses.supervisor,
    WRIT_API_KEY: platform.apiKey,
    RUN: runId,
    SESSION: sessionId,
    APPROVAL: approvalId,
    INSTANCE: agents[0]?.agent?.instance ?? '',
    HALT: halt?.haltId ?? '',
    KEY_ID: keys.list().at(-1)?.id ?? '',
    SIGNING_KEY: signer.keyId,
    // Pages only export these variables, for programs that this test does not start.
    AGENT_KEY: key,
    TOKEN: 'writ_run_token',
  };
}

async function pendingApproval({ client }: TestPlatform, runId: string): Promise<string> {
  for await (const { approval } of client.approvals.watchApprovals({})) {
    if (approval?.runId === runId) return approval.approvalId;
  }
  throw new Error('The watch of approvals ended.');
}

/**
 * Approves every pending approval other than `except`, until the platform stops, as a person in another terminal does.
 */
async function approveOthers({ client }: TestPlatform, except: string): Promise<void> {
  try {
    for await (const { approval } of client.approvals.watchApprovals({})) {
      if (approval?.state !== ApprovalState.PENDING || approval.approvalId === except) continue;
      const { approvalId } = approval;
      await client.approvals.decideApproval({
        requestId: `yes-${approvalId}`,
        approvalId,
        answer: { case: 'approveWithEdits', value: { changesJson: '{"amount_usd":800}' } },
      });
    }
  } catch {
    // The platform stopped.
  }
}

function runInBash(
  script: string,
  folder: string,
  variables: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const path = [join(folder, 'bin'), join(ROOT, 'node_modules/.bin'), process.env.PATH];
  const child = spawn('bash', ['-c', script], {
    cwd: folder,
    env: { ...process.env, ...variables, PATH: path.join(delimiter) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  // Kills a command that hangs, so that it does not outlive the test.
  const limit = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), 240_000);
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.on('close', (code) => {
      clearTimeout(limit);
      done({ code, output });
    });
  });
}
