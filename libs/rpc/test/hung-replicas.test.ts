import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ALLOWED, clientOf, rejection, START } from './fixture.ts';

const PROGRAM = fileURLToPath(new URL('./replica-program.ts', import.meta.url));
/** Deadline of a call: a call that waited for a hung replica would last until then. */
const LIMIT_MS = 60_000;
/** Maximum duration of calls that must not wait for a hung replica, far below their deadline. */
const LIVENESS_MS = LIMIT_MS / 2;
const RETRYING = { ...ALLOWED, retry: true, timeoutMs: LIMIT_MS };

interface Replica {
  readonly process: ChildProcess;
  readonly address: string;
}

async function replica(name: string): Promise<Replica> {
  const child = spawn(process.execPath, [PROGRAM, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [address] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { process: child, address };
}

/** Starts replicas in separate processes, and a client of all of them. */
async function replicas(...names: string[]) {
  const started = await Promise.all(names.map(replica));
  const lines: Record<string, unknown>[] = [];
  const telemetry = createTelemetry({
    service: 'test',
    logStream: { write: (line: string) => void lines.push(JSON.parse(line)) },
  });
  const client = clientOf(started.map(({ address }) => address).join(','), telemetry);
  /** Returns the replica that responded, and the duration. */
  const call = async (goal = START.goal) => {
    const startedAt = performance.now();
    const { run } = await client.startRun({ ...START, goal }, RETRYING);
    return { from: run?.runId, tookMs: performance.now() - startedAt };
  };
  const answers = async (count: number) => {
    const all: Awaited<ReturnType<typeof call>>[] = [];
    for (let each = 0; each < count; each += 1) all.push(await call());
    return all;
  };
  const allRespond = () =>
    vi.waitFor(async () => {
      const from = (await answers(2 * names.length)).map((each) => each.from);
      expect(new Set(from)).toEqual(new Set(names));
    }, LIMIT_MS);
  await allRespond();
  return { started, client, lines, call, answers, allRespond };
}

function totalMs(calls: readonly { readonly tookMs: number }[]): number {
  return calls.reduce((sum, { tookMs }) => sum + tookMs, 0);
}

describe('a client of a service with a hung replica', () => {
  it('ejects the hung replica, and readmits the replica when it responds again (SYS-4, SYS-5)', async () => {
    const { started, lines, call, answers, allRespond } = await replicas('a', 'b');
    const [a] = started;
    a?.process.kill('SIGSTOP');
    const inFlight = await Promise.all(Array.from({ length: 20 }, () => call()));
    expect(new Set(inFlight.map(({ from }) => from))).toEqual(new Set(['b']));
    expect(Math.max(...inFlight.map(({ tookMs }) => tookMs))).toBeLessThan(LIVENESS_MS);
    const later = await answers(50);
    expect(new Set(later.map(({ from }) => from))).toEqual(new Set(['b']));
    // If the hung replica still received calls, each of them would wait for the connection to fail.
    expect(totalMs(later)).toBeLessThan(LIVENESS_MS);
    a?.process.kill('SIGCONT');
    await allRespond();
    const logged = lines.filter(({ replica: about }) => about === a?.address);
    expect(logged.at(0)).toMatchObject({
      msg: 'replica ejected from load balancing',
      rpc_service: RunService.typeName,
    });
    expect(logged.at(-1)).toMatchObject({
      msg: 'replica readmitted to load balancing',
      state: 'serving',
    });
    for (const line of logged) expect(line).not.toHaveProperty('trace_id');
  });

  it('ejects a replica whose event loop is blocked (SYS-4, SYS-5)', async () => {
    const { started, client, answers, allRespond } = await replicas('a', 'b');
    // Without retries, because a retry would block the other replica too.
    const blocked = client.startRun(
      { ...START, goal: 'hang 8 s' },
      { ...ALLOWED, retry: false, timeoutMs: LIMIT_MS },
    );
    expect(await rejection(blocked)).toMatchObject({ kind: 'unavailable' });
    const later = await answers(50);
    expect(new Set(later.map(({ from }) => from)).size).toBe(1);
    expect(totalMs(later)).toBeLessThan(LIVENESS_MS);
    expect(started).toHaveLength(2);
    await allRespond();
  });

  it('fails at once when the hung replica is the only one (SYS-4)', async () => {
    const { started, client, allRespond } = await replicas('a');
    started[0]?.process.kill('SIGSTOP');
    await vi.waitFor(async () => {
      const options = { ...ALLOWED, retry: false, timeoutMs: LIMIT_MS };
      const startedAt = performance.now();
      const failure = await rejection(client.startRun(START, options));
      expect(failure).toMatchObject({ kind: 'unavailable' });
      expect(String(failure)).toContain('does not respond');
      expect(performance.now() - startedAt).toBeLessThan(LIVENESS_MS);
    }, LIMIT_MS);
    started[0]?.process.kill('SIGCONT');
    await allRespond();
  });
});
