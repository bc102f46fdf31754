import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { createModelSimulator } from '@writ/simulator';
import { startKeyPeer } from '@writ/testing';
import { expect, it, onTestFinished } from 'vitest';
import { AGENT, given, RUN, TENANT } from './meter-fixture.ts';
import { startMeterProcess } from './meter-process.ts';
import { ask } from './model-calls.ts';
import { PRICES, reference } from './models-yaml.ts';

it('settles unanswered calls in full after kill -9 and replays recorded answers (EM-3, EM-7)', async () => {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const dir = await mkdtemp(join(tmpdir(), 'writ-meter-crash-'));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const usage = { prompt_tokens: 10, completion_tokens: 10 };
  const script = (name: string, reply: object) => ({ name, entries: [{ reply }] });
  const simulator = await createModelSimulator({
    scripts: [
      script('quick', { text: 'Quick.', usage }),
      {
        name: 'slow',
        entries: [
          { times: 1, reply: { text: 'Never.', delay_ms: 60_000 } },
          { reply: { text: 'Slow.', usage } },
        ],
      },
    ],
  });
  stack.defer(() => simulator.close());
  const supervisor = await startKeyPeer('supervisor');
  stack.defer(() => supervisor.close());
  const worker = await startKeyPeer('agent-worker');
  stack.defer(() => worker.close());
  const spawnBudget = await startKeyPeer('spawn-budget');
  stack.defer(() => spawnBudget.close());
  const models = [
    'models:',
    ...['quick', 'slow'].map(
      (name) =>
        `  ${name}: { base_url: "${reference('SIM')}", model: "sim:${name}", api_key_env: KEY, max_output_tokens: 50, ${PRICES} }`,
    ),
  ];
  await writeFile(join(dir, 'models.yaml'), models.join('\n'));
  const boot = async () => {
    const meter = await startMeterProcess({
      WRIT_DATA: dir,
      WRIT_MODELS_FILE: join(dir, 'models.yaml'),
      WRIT_EXECUTION_METER_PORT: '0',
      WRIT_SUPERVISOR_ADDRESS: supervisor.address,
      WRIT_AGENT_WORKER_ADDRESS: worker.address,
      WRIT_SPAWN_BUDGET_ADDRESS: spawnBudget.address,
      WRIT_LOG_LEVEL: 'silent',
      SIM: simulator.url,
      KEY: 'simulated',
    });
    stack.defer(() => meter.kill());
    const to = { audience: 'execution-meter', address: meter.address } as const;
    return {
      meter,
      tabs: supervisor.client(ExecutionMeterService, to),
      models: worker.client(ModelService, to),
    };
  };
  const { executionMeterToken } = await supervisor.agentCredentials({
    tenant: TENANT,
    runId: RUN,
    agent: { name: 'support', instance: AGENT },
    models: ['quick', 'slow'],
  });
  const holder = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
  const slotGrant = await spawnBudget.slotGrant(holder, 60_000);
  const options = { agentToken: executionMeterToken, slotGrant, epoch: 1n };
  const level = async (tabs: Awaited<ReturnType<typeof boot>>['tabs']) => {
    const { tab } = await tabs.getTab({
      tab: { tenant: TENANT, runId: RUN, agentInstance: AGENT },
    });
    return given(tab?.levels.find((balance) => balance.level === BudgetLevel.AGENT));
  };
  const finishedOf = async (
    service: Awaited<ReturnType<typeof boot>>,
    callId: string,
    model: string,
  ) => {
    const chunks = await Array.fromAsync(service.models.generate(ask({ callId, model }), options));
    const last = chunks.at(-1)?.chunk;
    if (last?.case !== 'finished') throw new Error('The call did not finish.');
    return last.value;
  };

  const before = await boot();
  await before.tabs.openTab({
    requestId: 'open-1',
    tenant: TENANT,
    runId: RUN,
    sessionId: 'session-1',
    agent: { name: 'support', instance: AGENT },
    budget: {},
    models: ['quick', 'slow'],
  });
  await finishedOf(before, 'op-1', 'quick');
  const lost = finishedOf(before, 'op-2', 'slow').catch((error: unknown) => error);
  await simulator.until(({ script, outcome }) => script === 'slow' && outcome === 'open');
  const held = (await level(before.tabs)).reservedTokens;
  expect(held).toBeGreaterThan(50n);
  await before.meter.kill();
  await lost;

  const after = await boot();
  expect(await level(after.tabs)).toMatchObject({
    usedTokens: 20n + held,
    reservedTokens: 0n,
    usedTurns: 2n,
  });
  const replay = await finishedOf(after, 'op-1', 'quick');
  expect(replay).toMatchObject({ replayed: true, attempts: 1 });
  const again = await finishedOf(after, 'op-2', 'slow');
  expect(again).toMatchObject({ attempts: 2, estimated: true, replayed: false });
  expect(again.usage?.inputTokens).toBeGreaterThan(10n);
  expect(simulator.requests().filter(({ script }) => script === 'quick')).toHaveLength(1);
});
