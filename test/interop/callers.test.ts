import type { WritClient } from '@writ/client';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { loadExample } from '@writ/platform';
import {
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { startTestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Forge } from '../e2e/identities.ts';
import { type CallerProgram, callerPrograms, callProgram } from './caller-program.ts';

const example = loadExample('refund-desk');
const programs = callerPrograms();
const hasNoProgram = programs.every(({ command }) => command.length === 0);

/** A platform that client programs call. */
interface CallerPlatform {
  readonly edgeUrl: string;
  readonly apiKey: string;
  readonly meter: string;
  readonly client: WritClient;
  readonly dataDir: string;
  /** TLS settings of a client; empty for cleartext. */
  readonly tls: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const PLATFORMS: readonly {
  name: string;
  isAvailable: boolean;
  open: () => Promise<CallerPlatform>;
}[] = [
  { name: 'in one process', isAvailable: true, open: openEmbedded },
  {
    name: 'in one process per service, with PostgreSQL, NATS and TLS',
    isAvailable: !hasNoProgram && isDistributedPlatformAvailable(),
    open: openDistributed,
  },
];

async function openEmbedded(): Promise<CallerPlatform> {
  const { platform, client, dataDir, close } = await startTestPlatform();
  const { edgeUrl, apiKey, addresses } = platform;
  return { edgeUrl, apiKey, meter: addresses['execution-meter'], client, dataDir, tls: {}, close };
}

async function openDistributed(): Promise<CallerPlatform> {
  const platform = await startDistributedPlatform({ replicas: 1, tls: true });
  const { apiKey, client, dataDir, certificates } = platform;
  const [edgeUrl = ''] = platform.edgeUrls;
  const meter = platform.replica('execution-meter-0').address;
  const tls = { WRIT_CA_FILE: certificates?.caFile ?? '', ...certificates?.env('supervisor') };
  return { edgeUrl, apiKey, meter, client, dataDir, tls, close: () => platform.close() };
}

const available = new Set(PLATFORMS.filter(({ isAvailable }) => isAvailable));

describe.each(PLATFORMS)('a client in another language, with the platform $name:', (setup) => {
  let platform: CallerPlatform;
  let serviceToken = '';

  beforeAll(async () => {
    if (!available.has(setup) || hasNoProgram) return;
    platform = await setup.open();
    serviceToken = await new Forge(platform.dataDir).service('supervisor', 'execution-meter');
  });
  afterAll(() => platform?.close());

  const call = (program: CallerProgram, ...args: readonly string[]) =>
    callProgram(
      program,
      {
        WRIT_ADDRESS: new URL(platform.edgeUrl).host,
        WRIT_API_KEY: platform.apiKey,
        WRIT_EXECUTION_METER_ADDRESS: platform.meter,
        WRIT_SERVICE_TOKEN: serviceToken,
        ...platform.tls,
      },
      ...args,
    );

  /** Starts a run that escalates. */
  const start = async (program: CallerProgram, ...flags: readonly string[]): Promise<string> => {
    const { dash } = program;
    const model = [`${dash}model`, 'sim-escalate-1200'];
    const started = await call(program, 'start', ...model, ...flags, example.agent, example.goal);
    expect(started).toMatchObject({ code: 0, stderr: '' });
    return started.lines[0] ?? '';
  };

  /** Waits for the approval of a run; returns its id. */
  const approvalOf = async (program: CallerProgram, run: string): Promise<string> => {
    await expect
      .poll(async () => (await call(program, 'approvals', run)).lines[0], { interval: 200 })
      .toMatch(/^apr_\S+ issue_refund \{.*1200.*\}$/);
    return (await call(program, 'approvals', run)).lines[0]?.split(' ')[0] ?? '';
  };

  for (const program of programs)
    describe.skipIf(!available.has(setup) || program.command.length === 0)(program.language, () => {
      const { dash } = program;

      it('lists agents, starts and watches a run, approves an edited refund and reads its cost (SYS-2, SV-5, SV-6)', async () => {
        expect((await call(program, 'agents')).lines.join('\n')).toContain('refund-worker: ');
        const run = await start(program);
        const watched = call(program, 'watch', run);
        const approval = await approvalOf(program, run);
        const comment = [`${dash}comment`, 'as much as the rules allow'];
        const edit = [`${dash}edit`, '{"amount_usd": 800}'];
        const approved = await call(program, 'approve', ...edit, ...comment, approval);
        expect(approved).toMatchObject({ code: 0, stderr: '' });
        expect(approved.lines[0]).toMatch(/^APPROVAL_STATE_APPROVED \{.*"amount_usd": ?800\b/);

        const { code, lines } = await watched;
        expect(code).toBe(0);
        const positions = lines.slice(0, -2).flatMap((line) => /^(\d+) /.exec(line)?.[1] ?? []);
        expect(positions).toEqual(positions.map((_, index) => String(index + 1)));
        expect(lines.join('\n')).toMatch(
          /VERDICT_ESCALATE issue_refund high_refund_requires_human/,
        );
        expect(lines).toContain('RUN_STATUS_OK success');
        expect(lines.at(-1)).toContain('800 USD');

        const [usage = ''] = (await call(program, 'usage', run)).lines;
        expect(usage).toMatch(/^input_tokens=\d+ output_tokens=\d+ turns=4 cost_usd=0\.00\d+$/);
        const { result } = (await platform.client.runs.getRun({ runId: run })).run ?? {};
        expect(usage).toContain(`input_tokens=${result?.usage?.usage?.inputTokens} `);
        expect(result?.trace[1]).toMatchObject({
          executedFrom: ExecutedFrom.HUMAN_REVISED,
          humanApproved: true,
        });
      });

      it('cancels a run that waits for an approval, and its watcher receives the final status (SYS-2, SUP-6)', async () => {
        const run = await start(program);
        await approvalOf(program, run);
        const watched = call(program, 'watch', run);
        const cancelled = await call(program, 'cancel', `${dash}reason`, 'changed my mind', run);
        expect(cancelled).toMatchObject({ code: 0, stderr: '' });
        expect(cancelled.lines[0]).toMatch(/^RUN_STATE_(ENDING|CANCELLED)$/);
        expect((await watched).lines).toContain('RUN_STATUS_STOPPED cancelled');
      });

      it('reads the exceeded cap and the overrun from the ErrorInfo of BUDGET_EXHAUSTED (SYS-3, EM-2)', async () => {
        const run = await start(program, `${dash}max-tokens`, '50000');
        await approvalOf(program, run);
        const booked = await call(program, 'consume', `${dash}tokens`, '60000', run);
        expect(booked.code).toBe(3);
        expect(booked.stderr).toMatch(/^budget exhausted: tokens, 6\d{4} of 50000$/);
        await call(program, 'cancel', run);
      });

      it('distinguishes a run with an exhausted budget from a failed run (SYS-3, EM-1)', async () => {
        const run = await start(program, `${dash}max-tokens`, '0');
        const { code, lines, stderr } = await call(program, 'watch', run);
        expect(lines).toContain('RUN_STATUS_STOPPED budget_exhausted:tokens');
        expect({ code, stderr }).toEqual({ code: 3, stderr: 'budget exhausted: tokens' });
      });

      it('prints the reason of any other error (SYS-3)', async () => {
        const refused = await call(program, 'usage', 'run_unknown');
        expect(refused).toMatchObject({ code: 1, lines: [''] });
        expect(refused.stderr).toMatch(/^RUN_NOT_FOUND: .*run_unknown/);
        expect((await call(program, 'usage')).code).toBe(2);
      });
    });
});
