import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInProcessBus, TIMELINE_CONSUMER } from '@writ/bus';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { formatUsd } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';
import { EXIT } from '../src/io.ts';

/** The bus of a service process without WRIT_NATS_URL; the events of the process remain in its outbox. */
const noNats = () =>
  createInProcessBus({ requiredConsumers: [TIMELINE_CONSUMER], onError: () => undefined });

describe.each([
  ['in one process', undefined],
  ['whose services have no NATS', noNats],
] as const)('writ observe of a platform %s', (_, busOf) => {
  let test: TestPlatform;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'writ-observe-'));
    test = await startTestPlatform({ ...(busOf && { busOf }) });
  });
  afterAll(async () => {
    await test.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs a command line with the API key of the platform; returns its output and exit code. */
  async function writ(...args: readonly string[]) {
    const [out, err]: [string[], string[]] = [[], []];
    const exit = await runCli(args, {
      env: { WRIT_ADDRESS: test.platform.edgeUrl, WRIT_API_KEY: test.platform.apiKey },
      print: (text) => void out.push(...text.split('\n')),
      warn: (text) => void err.push(text),
    });
    return { exit, out, err };
  }

  async function startRun(script: string): Promise<string> {
    const { agent, goal } = loadExample('refund-desk');
    const request = { requestId: script, agent, goal, model: `sim-${script}` };
    return (await test.client.runs.startRun(request)).run?.runId ?? '';
  }

  async function endedRun(runId: string): Promise<Run | undefined> {
    await Array.fromAsync(test.client.runs.watchRun({ runId }));
    return (await test.client.runs.getRun({ runId })).run;
  }

  it('follows one run to its end, prints its cost and logs its events (HK-3)', async () => {
    const runId = await startRun('auto-1000');
    const { exit, out, err } = await writ('observe', runId, '--logs', folder);
    const run = await endedRun(runId);
    const { usage, costNanoUsd = 0n } = run?.result?.usage ?? {};
    const tokens = `${usage?.inputTokens} + ${usage?.outputTokens} tokens`;
    const line = `4 model calls  ${tokens}  ${formatUsd(costNanoUsd)} USD`;
    expect({ exit, out, err }).toEqual({
      exit: EXIT.success,
      out: [`${runId}  ${run?.agent?.instance}  success  ${line}`],
      err: [],
    });
    const logged = readFileSync(join(folder, `${runId}.jsonl`), 'utf8')
      .trimEnd()
      .split('\n')
      .map((text) => (JSON.parse(text) as { event: string }).event);
    expect(logged[0]).toBe('RUN_START');
    expect(logged.at(-1)).toBe('RUN_END');
    expect(logged).toEqual(
      expect.arrayContaining(['STEP_START', 'LLM_END', 'TOOL_START', 'TOOL_END', 'STEP_END']),
    );
  });

  it('prints the last events of a run that did not succeed (HK-3)', async () => {
    const { exit, out, err } = await writ('observe', await startRun('early-final'));
    const reason = 'supervisor_block:final_requires_context';
    expect(out[0]).toContain(`  ${reason}  1 model calls  `);
    expect(out.at(-1)).toMatch(new RegExp(`^  \\S+  STEP_END  ${reason}$`));
    expect({ exit, err }).toEqual({ exit: EXIT.success, err: [] });
  });

  it('prints one error message if there is nothing to observe (HK-3)', async () => {
    const { error } = EXIT;
    expect(await writ('observe', 'run_unknown')).toEqual({
      exit: error,
      out: [],
      err: ['Run run_unknown does not exist.'],
    });
    expect(await writ('observe')).toEqual({
      exit: error,
      out: [],
      err: [
        'WRIT_NATS_URL is not set. Set it and WRIT_NATS_PASSWORD to observe all runs, or name a run.',
      ],
    });
  });
});
