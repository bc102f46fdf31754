import { join } from 'node:path';
import { createWritClient } from '@writ/client';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import type { Role } from '@writ/rpc';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAMILY } from './scripted/family.ts';
import type { ScriptedAgent } from './scripted/scripted-agent.ts';
import { ScriptedWorker } from './scripted/scripted-worker.ts';

describe('Reprioritize', () => {
  let test: TestPlatform;
  let worker: ScriptedWorker;
  beforeAll(async () => {
    test = await startTestPlatform({ files: FAMILY });
    worker = await ScriptedWorker.start({
      dataDir: test.dataDir,
      addresses: test.platform.addresses,
    });
  });
  afterAll(async () => {
    worker.close();
    await test.close();
  });

  /** A root and a LOW scout that fill the pool of their run. */
  async function family(requestId: string) {
    const request = { requestId, agent: 'lead', goal: 'Find it.', spawnBudget: { maxAgents: 2 } };
    const { run } = await test.client.runs.startRun(request);
    const root = await worker.take(run?.runId ?? '');
    return { root, scout: await root.child('op-1') };
  }

  const change = (requestId: string, { runId, instance }: ScriptedAgent, priority: Priority) =>
    test.client.control.reprioritize({ requestId, runId, agentInstance: instance, priority });

  async function auditOf(runId: string) {
    const filter = { runId, kind: 'reprioritize' };
    const { records } = await test.client.audit.listAuditRecords(filter);
    return records.map(({ canonicalJson }) => JSON.parse(canonicalJson) as unknown);
  }

  it('pauses a demoted agent of a full pool at once and resumes it when promoted (SB-5, SB-4)', async () => {
    const { root, scout } = await family('start-1');
    const { runId } = root;
    const demoted = await change('demote-1', scout, Priority.BACKGROUND);
    expect(demoted.slot).toMatchObject({ state: SlotState.PAUSED, grant: '' });
    expect(demoted.changes.map(({ agent, to }) => [agent?.instance, to])).toEqual([
      [scout.instance, SlotState.PAUSED],
    ]);
    // The grant is still valid, so the supervisor rejects the action because of its own state.
    await expect(scout.propose('op-2', 42)).rejects.toMatchObject({ reason: 'AGENT_PAUSED' });
    const { pool } = await test.client.usage.getPool({ runId });
    expect(pool?.paused.map(({ agent, priority }) => [agent?.instance, priority])).toEqual([
      [scout.instance, Priority.BACKGROUND],
    ]);
    await change('promote-1', scout, Priority.HIGH);
    expect(await scout.renew()).toMatchObject({
      state: SlotState.ACTIVE,
      priority: Priority.HIGH,
    });
    expect((await scout.propose('op-2', 42))?.writ).not.toBe('');
    expect(await auditOf(runId)).toMatchObject([
      { ordered_by: 'developer', from: 'LOW', to: 'BACKGROUND', agent_instance: scout.instance },
      { ordered_by: 'developer', from: 'BACKGROUND', to: 'HIGH', agent_instance: scout.instance },
    ]);
  });

  it('does not change the priority when a request is repeated after a later request (SB-5, SB-9)', async () => {
    const { root, scout } = await family('start-2');
    await change('demote-2', scout, Priority.BACKGROUND);
    await change('promote-2', scout, Priority.HIGH);
    const repeated = await change('demote-2', scout, Priority.BACKGROUND);
    expect(repeated.slot?.priority).toBe(Priority.HIGH);
    await scout.renew();
    expect((await scout.propose('op-2', 42))?.writ).not.toBe('');
    expect(await auditOf(root.runId)).toHaveLength(2);
    await expect(change('demote-2', scout, Priority.LOW)).rejects.toMatchObject({
      reason: 'REQUEST_ID_REUSED',
    });
  });

  it('rejects a change by another tenant, and a change of an agent that has ended (SB-5, SYS-6)', async () => {
    const { root, scout } = await family('start-3');
    const { runId, instance: agentInstance } = scout;
    const request = { requestId: 'r', runId, agentInstance, priority: Priority.HIGH };
    const keys = openApiKeys({ file: join(test.dataDir, API_KEYS_FILE) });
    const as = async (roles: Role[]) => {
      const apiKey = await keys.create({ subject: 'eve', tenant: 'rivals', roles });
      return createWritClient({ baseUrl: test.platform.edgeUrl, apiKey }).control;
    };
    const rival = await as(['admin']);
    await expect(rival.reprioritize(request)).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
    const ofOthers = { ...request, tenant: 'default' };
    await expect(rival.reprioritize(ofOthers)).rejects.toMatchObject({
      reason: 'OPERATOR_REQUIRED',
    });
    const operator = await as(['operator']);
    expect((await operator.reprioritize(ofOthers)).slot?.priority).toBe(Priority.HIGH);
    await root.endChild(agentInstance, 'end-1');
    await expect(change('late', scout, Priority.LOW)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
    });
    expect(await auditOf(runId)).toHaveLength(1);
  });
});
