import { DatabaseSync } from 'node:sqlite';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

describe('the metric of an event', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  it('counts a run once although transactions that end it are rolled back (SYS-1, HK-2)', async ({
    skip,
  }) => {
    const { store } = supervisor.config;
    if (store.dialect !== 'sqlite') return skip();
    const { run } = await supervisor
      .runs()
      .startRun({ requestId: 'req-1', agent: 'worker', goal: 'Do it.' });
    const runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    const database = new DatabaseSync(store.file);
    onTestFinished(() => database.close());
    database.exec(
      `create trigger undo before insert on outbox when new.subject like '%.RUN_END'
       begin select raise(abort, 'undone'); end`,
    );
    await supervisor.runs().cancelRun({ requestId: 'cancel-1', runId });
    const attempts = () =>
      Number(database.prepare('select max(attempts) as n from orders').get()?.n ?? 0);
    await vi.waitFor(() => expect(attempts()).toBeGreaterThan(2));
    expect(supervisor.counted).not.toContain('runs');
    database.exec('drop trigger undo');
    await Array.fromAsync(supervisor.runs().watchRun({ runId }));
    expect(supervisor.counted.filter((metric) => metric === 'runs')).toEqual(['runs']);
  });
});
