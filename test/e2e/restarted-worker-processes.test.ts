import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AGENT_WORKER_DEFAULTS, type AgentWorkerConfig } from '@writ/agent-worker';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { startFaultProxy } from '@writ/testing/faults';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { waitForLine } from '@writ/testing/processes';
import { expect, it, onTestFinished, vi } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const CHILD = join(ROOT, 'services/agent-worker/test/worker-child.ts');
const REFUND = { user_id: 42, amount_usd: 10, reason: 'Charged twice.' };

const AGENTS = `
agents:
  - { name: clerk, kind: custom, tools: [issue_refund] }
`;
/** The clerk acts when its process receives a message, and reports the outcome. */
const MODULE = `
import { once } from 'node:events';
import { defineAgent } from ${JSON.stringify(join(ROOT, 'libs/kernel/src/index.ts'))};
export const agents = [defineAgent({
  name: 'clerk',
  async run(agent) {
    const order = once(process, 'message');
    process.send('ready');
    await order;
    try {
      const refund = await agent.tool('issue_refund', ${JSON.stringify(REFUND)});
      process.send(refund.ok ? 'refunded' : refund.message);
    } catch (error) {
      process.send(error.constructor.name);
      throw error;
    }
    return 'Refunded.';
  },
})];
`;

/**
 * A worker process that runs the clerk. All worker processes of the test have the same worker id and the same store.
 */
class Worker {
  readonly address: string;
  /** Messages of the clerk. */
  readonly messages: string[];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, messages: string[], address: string) {
    this.#child = child;
    this.messages = messages;
    this.address = address;
  }

  static async start({ dataDir, platform }: TestPlatform): Promise<Worker> {
    const config: AgentWorkerConfig = {
      ...AGENT_WORKER_DEFAULTS,
      port: 0,
      dataDir,
      store: { dialect: 'sqlite', file: join(dataDir, 'worker-processes.db') },
      agentModules: [join(dataDir, 'agents.ts')],
      // A process renews neither its lease nor its slot, so that only its call detects the takeover.
      leaseTtlMs: 3_600_000,
      slotRenewMs: 3_600_000,
    };
    const settings = JSON.stringify({ config, addresses: platform.addresses });
    const child = fork(CHILD, [settings], {
      execArgv: [],
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    onTestFinished(async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    });
    const messages: string[] = [];
    child.on('message', (text) => messages.push(String(text)));
    const [address] = await waitForLine(child, /\S+/);
    return new Worker(child, messages, address);
  }

  /** Resolves when the clerk has sent exactly these messages. */
  async untilSent(...expected: readonly string[]): Promise<void> {
    await vi.waitFor(() => expect(this.messages).toEqual(expected), { timeout: 60_000 });
  }

  /** Makes the clerk act. */
  act(): void {
    this.#child.send('act');
  }

  async pause(): Promise<void> {
    this.#child.kill('SIGSTOP');
    const stat = `/proc/${this.#child.pid}/stat`;
    await vi.waitFor(() => expect(readFileSync(stat, 'utf8')).toMatch(/ T /));
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }
}

it('rejects a worker that continues after a new process with the same id has taken over, even before the new process acts (RT-2)', async () => {
  const latest: { worker?: Worker } = {};
  const proxy = await startFaultProxy(() => latest.worker?.address ?? '');
  onTestFinished(() => proxy.close());
  const test = await startTestPlatform({
    files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: APPROVE_ALL, WRIT_AGENT_MODULES: MODULE },
    reroute: async (service, address) => (service === 'agent-worker' ? proxy.address : address),
  });
  onTestFinished(() => test.close());
  const { runs } = test.client;
  const former = await Worker.start(test);
  latest.worker = former;
  const { run } = await runs.startRun({ requestId: 'r-1', agent: 'clerk', goal: 'Refund it.' });
  const runId = run?.runId ?? '';
  await former.untilSent('ready');
  await former.pause();

  const restarted = await Worker.start(test);
  latest.worker = restarted;
  await restarted.untilSent('ready');
  former.act();
  former.resume();
  await former.untilSent('ready', 'LeaseLost');
  expect(readLedger(test.dataDir).refunds).toEqual([]);

  restarted.act();
  await restarted.untilSent('ready', 'refunded');
  await vi.waitFor(
    async () => expect((await runs.getRun({ runId })).run?.state).toBe(RunState.COMPLETED),
    { timeout: 60_000 },
  );
  expect(readLedger(test.dataDir).refunds).toEqual([expect.objectContaining({ run_id: runId })]);
  expect(former.messages).toEqual(['ready', 'LeaseLost']);
});
