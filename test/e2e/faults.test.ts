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
/** The deadline of a run; no refund may happen after it. */
const DEADLINE_MS = 700;

/** Starts a platform with a fault-injecting proxy in front of each service and of the model. */
async function startWithProxies(): Promise<{
  test: TestPlatform;
  proxies: Map<string, FaultProxy>;
}> {
  const proxies = new Map<string, FaultProxy>();
  const test = await startTestPlatform({
    reroute: async (name, address) => {
      const proxy = await startFaultProxy(address);
      proxies.set(name, proxy);
      return proxy.address;
    },
  });
  return { test, proxies };
}

async function runOf({ client }: TestPlatform, runId: string): Promise<Run | undefined> {
  return (await client.runs.getRun({ runId })).run;
}

/**
 * Starts a refund during a fault, and ends the fault once the run is ending. Returns the run, and the total number of
 * refunds when the fault ends.
 */
async function refundDuring(test: TestPlatform, proxy: FaultProxy, fault: ProxyFault) {
  const { runs } = test.client;
  proxy.fail(fault);
  const { run } = await runs.startRun({
    ...REFUND,
    requestId: newId('req'),
    runBudget: { deadline: durationFromMs(DEADLINE_MS) },
  });
  const runId = run?.runId ?? '';
  const isOver = async () => ((await runOf(test, runId))?.state ?? 0) >= RunState.ENDING;
  // expect.poll cannot determine its test when tests run concurrently.
  await vi.waitUntil(isOver);
  const duringFault = readLedger(test.dataDir).refunds.length;
  proxy.fail('none');
  await Array.fromAsync(runs.watchRun({ runId }));
  return { run: await runOf(test, runId), duringFault };
}

/** Starts a platform whose tools run in a separate process behind a fault-injecting proxy. */
async function startWithToolProxy(): Promise<{
  test: TestPlatform;
  proxy: FaultProxy;
  close: () => Promise<void>;
}> {
  // Gateway and provider need each other's address.
  const [port = 0] = await freePorts(1);
  const proxy = await startFaultProxy(`127.0.0.1:${port}`);
  const folder = mkdtempSync(join(tmpdir(), 'writ-faults-'));
  const tools = readFileSync(join(loadExample('refund-desk').folder, 'tools.yaml'), 'utf8');
  const provider = `desk: { kind: provider, address: "${proxy.address}" }`;
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
    await proxy.close();
    await served.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { test, proxy, close };
}

describe('with one dependency at fault', () => {
  it.concurrent('a tool provider that is down, slow or answers garbage causes no refund, and the run ends with a stop reason (SYS-4, TG-6)', async () => {
    const { test, proxy, close } = await startWithToolProxy();
    const refunds = () => readLedger(test.dataDir).refunds.length;
    const refund = async (): Promise<string | undefined> => {
      const { run } = await test.client.runs.startRun({ ...REFUND, requestId: newId('req') });
      const runId = run?.runId ?? '';
      await Array.fromAsync(test.client.runs.watchRun({ runId }));
      return (await runOf(test, runId))?.result?.stopReason;
    };
    try {
      for (const [paid, fault] of FAULTS.entries()) {
        const { run, duringFault } = await refundDuring(test, proxy, fault);
        expect(duringFault, fault).toBe(paid);
        const { status, stopReason } = run?.result ?? {};
        expect(status, fault).toBe(RunStatus.STOPPED);
        expect(stopReason, fault).toMatch(/^(deadline|tool_error:|tool_bad_result:)/);
        // The gateway reconnects with a delay; a call before that fails without a payment.
        await vi.waitUntil(async () => (await refund()) === 'success', { interval: 100 });
        expect(refunds(), fault).toBe(paid + 1);
      }
    } finally {
      await close();
    }
  }, 45_000);

  it.concurrent.each(DEPENDENCIES)(
    '%s that is down, slow or answers garbage causes no refund, and the run ends with a stop reason (SYS-4)',
    async (dependency: Dependency) => {
      const { test, proxies } = await startWithProxies();
      try {
        const proxy = proxies.get(dependency);
        if (proxy === undefined) throw new Error(`There is no proxy of ${dependency}.`);
        for (const fault of FAULTS) {
          const { run, duringFault } = await refundDuring(test, proxy, fault);
          expect(duringFault, fault).toBe(0);
          const { status, stopReason } = run?.result ?? {};
          expect(status, fault).toBe(RunStatus.STOPPED);
          expect(stopReason, fault).toMatch(/^(deadline|llm_timeout|provider_error:|error:)/);
        }
        expect(readLedger(test.dataDir)).toMatchObject({ refunds: [], emails: [] });
        // After the fault, the same run succeeds.
        const { run } = await test.client.runs.startRun({ ...REFUND, requestId: newId('req') });
        const runId = run?.runId ?? '';
        await Array.fromAsync(test.client.runs.watchRun({ runId }));
        expect((await runOf(test, runId))?.result?.stopReason).toBe('success');
        expect(readLedger(test.dataDir).refunds).toHaveLength(1);
      } finally {
        await test.close();
        await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
      }
    },
    90_000,
  );
});
