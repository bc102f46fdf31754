import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { AGENT, MeterWorld, type MeterWorldOptions, TENANT } from './meter-fixture.ts';

let world: MeterWorld;
async function start(options: MeterWorldOptions = {}): Promise<void> {
  world = await MeterWorld.start(options);
  await world.boot();
}
afterEach(() => world[Symbol.asyncDispose]());

const SESSION = 'session-1';
const DAY = BudgetLevel.TENANT_DAY;

const turn = (runId: string, callId: string) =>
  world.tab.reserve({
    tab: { tenant: TENANT, runId, agentInstance: AGENT },
    callId,
    tokens: 0n,
    costNanoUsd: 0n,
    turns: 1n,
  });

let requests = 0;
/** Sets the cap of turns; undefined removes it. */
async function setCap(level: BudgetLevel, maxTurns: bigint | undefined, requestId?: string) {
  requests += 1;
  const { balance } = await world.tab.setCaps({
    requestId: requestId ?? `set-${requests}`,
    tenant: TENANT,
    level,
    sessionId: level === BudgetLevel.SESSION ? SESSION : '',
    ...(maxTurns !== undefined && { caps: { maxTurns } }),
    setBy: 'anna',
  });
  return balance;
}

const refusedBy = (level: string) => ({ reason: 'BUDGET_EXHAUSTED', metadata: { level } });

describe('caps of a session', () => {
  it('are lowered and never raised by a further run (EM-3)', async () => {
    await start();
    const session = () => world.level(BudgetLevel.SESSION);
    await world.openTab({ sessionBudget: { maxTurns: 5n } });
    await world.openTab({ runId: 'run-2', sessionBudget: { maxTurns: 2n, maxTokens: 100n } });
    expect(await session()).toMatchObject({ limit: { maxTurns: 2n, maxTokens: 100n } });
    await world.openTab({ runId: 'run-3', sessionBudget: { maxTurns: 9n, maxTokens: 900n } });
    await world.openTab({ runId: 'run-4' });
    expect(await session()).toMatchObject({ limit: { maxTurns: 2n, maxTokens: 100n } });
    await turn('run-1', 'op-1');
    await turn('run-3', 'op-1');
    await expect(turn('run-4', 'op-1')).rejects.toMatchObject(refusedBy('session'));
  });

  it('keep the values that an operator set until they are removed (EM-3)', async () => {
    await start();
    await world.openTab({ sessionBudget: { maxTurns: 1n } });
    await turn('run-1', 'op-1');
    await expect(turn('run-1', 'op-2')).rejects.toMatchObject(refusedBy('session'));
    expect(await setCap(BudgetLevel.SESSION, 2n)).toMatchObject({
      limit: { maxTurns: 2n },
      remainingTurns: 1n,
      capsSetBy: 'anna',
    });
    await world.openTab({ runId: 'run-2', sessionBudget: { maxTurns: 1n } });
    await turn('run-2', 'op-1');
    await expect(turn('run-2', 'op-2')).rejects.toMatchObject(refusedBy('session'));
    await setCap(BudgetLevel.SESSION, undefined);
    await turn('run-2', 'op-2');
    await world.openTab({ runId: 'run-3', sessionBudget: { maxTurns: 3n } });
    await expect(turn('run-3', 'op-1')).rejects.toMatchObject(refusedBy('session'));
  });
});

describe('caps of a run', () => {
  const raise = (requestId: string, maxTurns: bigint, runId = 'run-1') =>
    world.tab.setCaps({
      requestId,
      tenant: TENANT,
      level: BudgetLevel.RUN,
      runId,
      caps: { maxTurns },
      setBy: 'anna',
    });

  it('apply to the run, the root and every agent that inherited them, and not to an agent with its own caps (EM-1, EM-3)', async () => {
    await start();
    const own = { maxTurns: 1n, maxTokens: 7n };
    const runBudget = { maxTurns: 2n };
    await world.openTab({ budget: runBudget, runBudget });
    await world.openTab({ agent: { name: 'child', instance: 'heir' }, budget: runBudget });
    await world.openTab({ agent: { name: 'child', instance: 'frugal' }, budget: own });
    await turn('run-1', 'op-1');
    await turn('run-1', 'op-2');
    await expect(turn('run-1', 'op-3')).rejects.toMatchObject(refusedBy('agent'));
    expect((await raise('r-1', 3n)).balance).toMatchObject({
      level: BudgetLevel.RUN,
      limit: { maxTurns: 3n },
      remainingTurns: 1n,
      capsSetBy: 'anna',
    });
    const limits = async (agentInstance: string) => {
      const { tab } = await world.tab.getTab({
        tab: { tenant: TENANT, runId: 'run-1', agentInstance },
      });
      return tab?.levels[0]?.limit;
    };
    expect(await limits('heir')).toMatchObject({ maxTurns: 3n });
    expect(await limits('frugal')).toMatchObject(own);
    await turn('run-1', 'op-3');
    await expect(turn('run-1', 'op-4')).rejects.toMatchObject(refusedBy('agent'));
    // A repeat of an earlier request does not undo a later one.
    await raise('r-2', 4n);
    await raise('r-1', 3n);
    await turn('run-1', 'op-4');
  });

  it('require a run with a tab (EM-3)', async () => {
    await start();
    await expect(raise('r-1', 3n, 'run-9')).rejects.toMatchObject({ reason: 'TAB_NOT_FOUND' });
  });
});

describe('caps of a tenant', () => {
  it('set at run time override the caps of the models file, even after a restart (EM-3)', async () => {
    await start({ file: true, tenants: 'tenants: { "*": { day: { max_turns: 1 } } }' });
    await world.openTab();
    await turn('run-1', 'op-1');
    await expect(turn('run-1', 'op-2')).rejects.toMatchObject(refusedBy('tenant_day'));
    await setCap(DAY, 2n);
    await turn('run-1', 'op-2');
    await expect(turn('run-1', 'op-3')).rejects.toMatchObject(refusedBy('tenant_day'));
    await world.meter.stop();
    await world.boot();
    await expect(turn('run-1', 'op-4')).rejects.toMatchObject(refusedBy('tenant_day'));
    const { levels } = await world.tab.getBalances({ tenant: TENANT });
    expect(levels[0]).toMatchObject({ limit: { maxTurns: 2n }, capsSetBy: 'anna' });
    await setCap(DAY, undefined);
    expect((await world.tab.getBalances({ tenant: TENANT })).levels[0]).toMatchObject({
      limit: { maxTurns: 1n },
      capsSetBy: '',
      remainingTurns: 0n,
    });
  });

  it('are not undone by the repeat of an earlier request (EM-3)', async () => {
    await start();
    await setCap(DAY, 1n, 'first');
    await setCap(DAY, 5n, 'second');
    expect(await setCap(DAY, 1n, 'first')).toMatchObject({ limit: { maxTurns: 5n } });
    await expect(setCap(DAY, 2n, 'first')).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
  });

  it('are rejected for the level AGENT, with a missing or extra id, or with a time limit (EM-3)', async () => {
    await start();
    const request = { requestId: 'r', tenant: TENANT, setBy: 'anna', caps: { maxTurns: 1n } };
    const rejected = (field: string) => ({ reason: 'INVALID_FIELD', metadata: { field } });
    await expect(world.tab.setCaps({ ...request, level: BudgetLevel.AGENT })).rejects.toMatchObject(
      rejected('level'),
    );
    await expect(world.tab.setCaps({ ...request, level: BudgetLevel.RUN })).rejects.toThrow(
      'run_id must be set for the level RUN and empty for other levels',
    );
    const { caps: _, ...removal } = { ...request, level: BudgetLevel.RUN, runId: 'run-1' };
    await expect(world.tab.setCaps(removal)).rejects.toThrow('caps is required for the level RUN');
    await expect(world.tab.setCaps({ ...request, level: DAY, sessionId: SESSION })).rejects.toThrow(
      'session_id must be set for the level SESSION and empty for other levels',
    );
    const timed = { deadline: { seconds: 5n, nanos: 0 } };
    await expect(world.tab.setCaps({ ...request, level: DAY, caps: timed })).rejects.toMatchObject(
      rejected('caps'),
    );
  });

  it('follow a changed models file without a restart, and ignore an invalid file (EM-3)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-caps-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'models.yaml');
    const write = (turns: string) =>
      writeFileSync(
        file,
        `models: { local: { base_url: "http://localhost:9", model: local } }
tenants: { ${TENANT}: { day: { max_turns: ${turns} } } }`,
      );
    write('1');
    await start({ config: { catalog: { file } } });
    await world.openTab();
    await turn('run-1', 'op-1');
    await expect(turn('run-1', 'op-2')).rejects.toMatchObject(refusedBy('tenant_day'));
    write('2');
    await vi.waitFor(() => turn('run-1', 'op-2'), { timeout: 10_000 });
    write('many');
    await expect(turn('run-1', 'op-3')).rejects.toMatchObject(refusedBy('tenant_day'));
    write('3');
    await vi.waitFor(() => turn('run-1', 'op-3'), { timeout: 10_000 });
  });
});
