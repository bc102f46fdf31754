import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { newId } from '@writ/kernel';
import { type FaultyWire, startFaultyWire, type WireFault } from '@writ/testing/faults';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { describe, expect, it } from 'vitest';

const DEPENDENCIES = [
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
  'agent-worker',
  'model',
] as const;
type Dependency = (typeof DEPENDENCIES)[number];

const FAULTS = ['down', 'slow', 'garbage'] as const satisfies readonly WireFault[];
const REFUND = { agent: 'refund-worker', goal: 'Refund it.', model: 'sim-auto-1000' } as const;
/** How long a run may take; nothing may happen after it either. */
const DEADLINE_MS = 700;

/** A platform with a wire before each of its services and before its model. */
async function wired(): Promise<{ test: TestPlatform; wires: Map<string, FaultyWire> }> {
  const wires = new Map<string, FaultyWire>();
  const test = await startTestPlatform({
    reroute: async (name, address) => {
      const wire = await startFaultyWire(address);
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
async function refundDuring(test: TestPlatform, wire: FaultyWire, fault: WireFault) {
  const { runs } = test.client;
  wire.fail(fault);
  const { run } = await runs.startRun({
    ...REFUND,
    requestId: newId('req'),
    runBudget: { deadline: durationFromMs(DEADLINE_MS) },
  });
  const runId = run?.runId ?? '';
  const isOver = async () => ((await runOf(test, runId))?.state ?? 0) >= RunState.ENDING;
  await expect.poll(isOver, { interval: 20, timeout: 30_000 }).toBe(true);
  const duringFault = readLedger(test.dataDir).refunds.length;
  wire.fail('none');
  await Array.fromAsync(runs.watchRun({ runId }));
  return { run: await runOf(test, runId), duringFault };
}

describe('with one dependency at fault', () => {
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
          expect(status, fault).not.toBe('ok');
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
