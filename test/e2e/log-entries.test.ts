import { join, resolve } from 'node:path';
import { createWritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';

const KERNEL = resolve(import.meta.dirname, '../../libs/kernel/src/index.ts');
const AGENTS = `
agents:
  - { name: person, kind: user-proxy }
  - { name: diarist, kind: custom }
`;
const MODULE = `
import { defineAgent } from ${JSON.stringify(KERNEL)};
export const agents = [defineAgent({
  name: 'diarist',
  async run(agent) {
    agent.log('diary.opened', { pages: 3 });
    for (const page of [1, 2, 3]) agent.log('diary.page', { page }, { text: 'Secret page ' + page });
    agent.log('diary.picture', {}, { bytes: 'x'.repeat(2_000_000) });
    await agent.all([(branch) => Promise.resolve(branch.log('diary.branch', {}, { text: 'Secret' }))]);
    return 'Written.';
  },
})];
`;

describe('the log entries of a run', () => {
  let world: TestPlatform;
  const lines: string[] = [];
  beforeAll(async () => {
    world = await startTestPlatform({
      files: {
        WRIT_AGENTS_FILE: AGENTS,
        WRIT_POLICY_FILE: APPROVE_ALL,
        WRIT_AGENT_MODULES: MODULE,
      },
      env: { WRIT_LOG_LEVEL: 'trace' },
      onLogLine: (line) => void lines.push(line),
    });
  });
  afterAll(() => world.close());

  async function start(
    agent: string,
    goal: string,
    retention: HistoryRetention = HistoryRetention.PERMANENT,
  ) {
    const request = { requestId: `r-${agent}-${retention}`, agent, goal, retention };
    const { run } = await world.client.runs.startRun(request);
    return run?.runId ?? '';
  }

  it('show a watching client the question to a person (AG-4, RT-1)', async () => {
    const { runs } = world.client;
    const runId = await start('person', 'Which colour has the Zebra?');
    let asked = { callId: '', agentInstance: '' };
    for await (const { event } of runs.watchRun({ runId })) {
      if (event?.entry.case !== 'hook') continue;
      const { type, logMessage, callId, agent } = event.entry.value;
      if (type !== HookEventType.LOG_ENTRY || logMessage !== 'hitl.question') continue;
      asked = { callId, agentInstance: agent?.instance ?? '' };
      break;
    }
    const { agentInstance } = asked;
    const { entries } = await runs.listLogEntries({ runId, agentInstance });
    const [entry] = entries.filter(({ callId }) => callId === asked.callId);
    expect(entry).toMatchObject({ message: 'hitl.question', agent: { name: 'person' } });
    const question = JSON.parse(entry?.contentJson ?? '');
    expect(question.text).toBe('Which colour has the Zebra?');
    const name = `human_reply:${question.correlation_id}`;
    await runs.signalRun({ runId, requestId: 's-1', name, payloadJson: '{"text":"Both."}' });
    await Array.fromAsync(runs.watchRun({ runId }));
    expect((await runs.getRun({ runId })).run?.result?.answer).toBe('Both.');
  });

  it('are paged in order, and omit contents that are too large (RT-1, BD-1)', async () => {
    const { runs } = world.client;
    const runId = await start('diarist', 'Write.');
    const events = await Array.fromAsync(runs.watchRun({ runId }));
    const all = (await runs.listLogEntries({ runId })).entries;
    const names = ['diary.opened', 'diary.page', 'diary.page', 'diary.page'];
    expect(all.map(({ message }) => message)).toEqual([...names, 'diary.picture', 'diary.branch']);
    const paged: typeof all = [];
    for (let pageToken = '', more = true; more; more = pageToken !== '') {
      const page = await runs.listLogEntries({ runId, pageSize: 2, pageToken });
      expect(page.entries.length).toBeLessThanOrEqual(2);
      paged.push(...page.entries);
      pageToken = page.nextPageToken;
    }
    expect(paged).toEqual(all);
    expect(JSON.parse(all[2]?.contentJson ?? '')).toEqual({ text: 'Secret page 2' });
    expect(JSON.parse(all[2]?.fieldsJson ?? '')).toEqual({ page: 2 });
    expect(all[4]).toMatchObject({ contentJson: '', contentOmitted: true });
    const announced = events.flatMap(({ event }) => {
      const hook = event?.entry.case === 'hook' ? event.entry.value : undefined;
      return hook?.type === HookEventType.LOG_ENTRY ? [hook.callId] : [];
    });
    expect(announced.toSorted()).toEqual(all.map(({ callId }) => callId).toSorted());
    await expect(runs.listLogEntries({ runId, pageToken: 'x' })).rejects.toMatchObject({
      reason: 'INVALID_PAGE_TOKEN',
    });
  });

  it('are visible only to the tenant of the run, until its retention deletes them (SYS-6)', async () => {
    const runId = await start('person', 'Which colour?', HistoryRetention.NONE);
    const outsider = createWritClient({
      baseUrl: world.platform.edgeUrl,
      apiKey: await openApiKeys({ file: join(world.dataDir, API_KEYS_FILE) }).create({
        subject: 'outsider',
        tenant: 'rivals',
        roles: ['caller', 'admin'],
      }),
    });
    await expect(outsider.runs.listLogEntries({ runId })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
    const { runs } = world.client;
    await expect.poll(async () => (await runs.listLogEntries({ runId })).entries.length).toBe(1);
    await runs.cancelRun({ requestId: 'c-1', runId });
    await Array.fromAsync(runs.watchRun({ runId }));
    // The run has no retention, so its end deletes the log entries with the journals (SUP-4).
    expect((await runs.listLogEntries({ runId })).entries).toEqual([]);
  });

  it('do not appear in log lines or spans (SYS-1)', () => {
    const spans = JSON.stringify(
      world.spans.spans().map(({ name, attributes, events }) => ({ name, attributes, events })),
    );
    expect(lines.some((line) => line.includes('hitl.question'))).toBe(true);
    for (const content of ['Zebra', 'Secret']) {
      expect(lines.filter((line) => line.includes(content))).toEqual([]);
      expect(spans).not.toContain(content);
    }
  });
});
