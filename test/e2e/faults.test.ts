import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Run, RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { createTelemetry } from '@writ/telemetry';
import { freePorts } from '@writ/testing/distributed';
import { type FaultProxy, type ProxyFault, startFaultProxy } from '@writ/testing/faults';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { describe, expect, it, vi } from 'vitest';
import { serveTools } from '../../examples/refund-desk/src/serve-tools.ts';

const DEPENDENCIES = [
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
  'agent-worker',
  'model',
] as const;
type Dependency = (typeof DEPENDENCIES)[number];

const FAULTS = ['down', 'stalled', 'garbage'] as const satisfies readonly ProxyFault[];
const REFUND = { agent: 'refund-worker', goal: 'Refund it.', model: 'sim-auto-1000' } as const;
/** How long a run may take; nothing may happen after it either. */
const DEADLINE_MS = 700;

/** A platform with a wire before each of its services and before its model. */
async function wired(): Promise<{ test: TestPlatform; wires: Map<string, FaultProxy> }> {
  const wires = new Map<string, FaultProxy>();
  const test = await startTestPlatform({
    reroute: async (name, address) => {
      const wire = await startFaultProxy(address);
      wires.set(name, wire);
      return wire.address;
    },
  });
  return { test, wires };
}

async function runOf({ client }: TestPlatform, runId: string): Promise<Run | undefined> {
  return (await client.runs.getRun({ runId })).run;
}

/** Has a refund proposed while one dependency is at fault, and heals it once the run is to end. */
async function refundDuring(test: TestPlatform, wire: FaultProxy, fault: ProxyFault) {
  const { runs } = test.client;
  wire.fail(fault);
  const { run } = await runs.startRun({
    ...REFUND,
    requestId: newId('req'),
    runBudget: { deadline: durationFromMs(DEADLINE_MS) },
  });
  const runId = run?.runId ?? '';
  const isOver = async () => ((await runOf(test, runId))?.state ?? 0) >= RunState.ENDING;
  // Not expect.poll: beside other tests it does not know whose it is.
  await vi.waitUntil(isOver);
  const duringFault = readLedger(test.dataDir).refunds.length;
  wire.fail('none');
  await Array.fromAsync(runs.watchRun({ runId }));
  return { run: await runOf(test, runId), duringFault };
}

/** A platform whose tools run in a program of their own, with a wire before it. */
async function wiredTools(): Promise<{
  test: TestPlatform;
  wire: FaultProxy;
  close: () => Promise<void>;
}> {
  // Gateway and provider each want to know where the other is.
  const [port = 0] = await freePorts(1);
  const wire = await startFaultProxy(`127.0.0.1:${port}`);
  const folder = mkdtempSync(join(tmpdir(), 'writ-faults-'));
  const tools = readFileSync(join(loadExample('refund-desk').folder, 'tools.yaml'), 'utf8');
  const provider = `desk: { kind: provider, address: "${wire.address}" }`;
  const file = join(folder, 'tools.yaml');
  writeFileSync(file, tools.replace(/desk: \{ kind: local.*\}/, provider));
  const test = await startTestPlatform({ env: { WRIT_TOOLS_FILE: file } });
  const gatewayAddress = test.platform.addresses['tool-gateway'];
  const served = await serveTools(
    { host: '127.0.0.1', port, dataDir: test.dataDir, gatewayAddress },
    createTelemetry({ service: 'refund-tools', logLevel: 'silent' }),
  );
  const close = async (): Promise<void> => {
    await test.close();
    await wire.close();
    await served.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { test, wire, close };
}

describe('with one dependency at fault', () => {
  it.concurrent('a tool provider down, slow or answering garbage, nothing is refunded, and the caller is told why the run ended (SYS-4, TG-6)', async () => {
    const { test, wire, close } = await wiredTools();
    const refunds = () => readLedger(test.dataDir).refunds.length;
    const refund = async (): Promise<string | undefined> => {
      const { run } = await test.client.runs.startRun({ ...REFUND, requestId: newId('req') });
      const runId = run?.runId ?? '';
      await Array.fromAsync(test.client.runs.watchRun({ runId }));
      return (await runOf(test, runId))?.result?.stopReason;
    };
    try {
      for (const [paid, fault] of FAULTS.entries()) {
        const { run, duringFault } = await refundDuring(test, wire, fault);
        expect(duringFault, fault).toBe(paid);
        const { status, stopReason } = run?.result ?? {};
        expect(status, fault).toBe(RunStatus.STOPPED);
        expect(stopReason, fault).toMatch(/^(deadline|tool_error:|tool_bad_result:)/);
        // The gateway connects again in its own time; a call before that fails, and pays nothing.
        await vi.waitUntil(async () => (await refund()) === 'success', { interval: 100 });
        expect(refunds(), fault).toBe(paid + 1);
      }
    } finally {
      await close();
    }
  }, 45_000);

  it.concurrent.each(DEPENDENCIES)(
    '%s down, slow or answering garbage, nothing is refunded, and the caller is told why the run ended (SYS-4)',
    async (dependency: Dependency) => {
      const { test, wires } = await wired();
      try {
        const wire = wires.get(dependency);
        if (wire === undefined) throw new Error(`There is no wire to ${dependency}.`);
        for (const fault of FAULTS) {
          const { run, duringFault } = await refundDuring(test, wire, fault);
          expect(duringFault, fault).toBe(0);
          const { status, stopReason } = run?.result ?? {};
          expect(status, fault).toBe(RunStatus.STOPPED);
          expect(stopReason, fault).toMatch(/^(deadline|llm_timeout|provider_error:|error:)/);
        }
        expect(readLedger(test.dataDir)).toMatchObject({ refunds: [], emails: [] });
        // What failed was the wire: with it mended, the same run does what it is for.
        const { run } = await test.client.runs.startRun({ ...REFUND, requestId: newId('req') });
        const runId = run?.runId ?? '';
        await Array.fromAsync(test.client.runs.watchRun({ runId }));
        expect((await runOf(test, runId))?.result?.stopReason).toBe('success');
        expect(readLedger(test.dataDir).refunds).toHaveLength(1);
      } finally {
        await test.close();
        await Promise.all([...wires.values()].map((wire) => wire.close()));
      }
    },
    90_000,
  );
});
