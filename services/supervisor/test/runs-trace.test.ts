import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { newTraceparent } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

describe('the trace of a run', () => {
  let supervisor: SupervisorUnderTest;
  beforeEach(async () => {
    supervisor = await SupervisorUnderTest.start();
  });
  afterEach(() => supervisor.close());

  /** Calls StartRun over plain HTTP with the given headers. */
  async function start(headers: Record<string, string>) {
    const url = `http://${supervisor.service.edgeAddress}/writ.run.v1.RunService/StartRun`;
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${supervisor.apiKey('anna')}`,
        ...headers,
      },
      body: JSON.stringify({ requestId: 'req-1', agent: 'worker', goal: 'Do it.' }),
    });
    const { run } = (await answer.json()) as { run: { runId: string; traceId: string } };
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
    return run;
  }

  async function cancelled(runId: string): Promise<void> {
    await supervisor.runs().cancelRun({ requestId: 'c-1', runId });
    await Array.fromAsync(supervisor.runs().watchRun({ runId }));
  }

  it('is the trace of StartRun on every hop, also after a restart (SYS-1)', async () => {
    const traceparent = newTraceparent();
    const [, traceId = '', clientSpan] = traceparent.split('-');
    const run = await start({ traceparent });
    expect(run.traceId).toBe(traceId);
    expect(supervisor.fakes.deliveries[0]?.traceparent).toContain(traceId);
    await supervisor.stop();
    await supervisor.restart();
    await cancelled(run.runId);
    // Every call for the run, as the peers received it.
    for (const call of supervisor.fakes.callsForRuns) {
      expect(call.traceparent).toContain(traceId);
    }

    const spans = supervisor.spans.spans(traceId);
    const names = spans.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['order start_run', 'order end_run']));
    const known = new Set(spans.map(({ spanId }) => spanId));
    for (const { name, parentSpanId } of spans) {
      // Every span has a parent.
      expect(known.has(parentSpanId ?? '') || parentSpanId === clientSpan, name).toBe(true);
    }
  });

  it('starts at the server when the client sends no trace context', async () => {
    const run = await start({});
    await cancelled(run.runId);
    const roots = supervisor.spans
      .spans(run.traceId)
      .filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(roots.map(({ name }) => name)).toEqual(['writ.run.v1.RunService/StartRun']);
  });
});
