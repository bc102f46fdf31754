import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type PersonName, SupervisorUnderTest } from './supervisor-under-test.ts';

const START = { requestId: 'req-1', agent: 'worker', goal: 'Do it.' };
const SSE = 'text/event-stream';

describe('event streams over plain HTTP', () => {
  let supervisor: SupervisorUnderTest;
  let runId: string;
  beforeEach(async () => {
    const config = { watchHeartbeatMs: 100, allowedOrigins: ['https://console.example'] };
    supervisor = await SupervisorUnderTest.start({ config });
    const { run } = await supervisor.runs().startRun(START);
    runId = run?.runId ?? '';
    await supervisor.fakes.called(AgentWorkerService.method.deliver);
  });
  afterEach(() => supervisor.close());

  const get = (path: string, headers: Record<string, string> = {}, person: PersonName = 'anna') =>
    fetch(`http://${supervisor.service.edgeAddress}${path}`, {
      headers: { authorization: `Bearer ${supervisor.apiKey(person)}`, ...headers },
    });
  const cancelled = async () => {
    await supervisor.runs().cancelRun({ requestId: 'cancel-1', runId });
    return await Array.fromAsync(supervisor.runs().watchRun({ runId }));
  };

  const stored = (watched: Awaited<ReturnType<typeof cancelled>>) =>
    watched
      .filter(({ event }) => event?.entry.case !== 'heartbeat')
      .map(({ event }) => event?.sequence);

  it('carry the timeline of a run as JSON lines, as WatchRun does (SYS-2, PE-2)', async () => {
    const [response, watched] = await Promise.all([get(`/v1/runs/${runId}/events`), cancelled()]);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = (await response.text()).trimEnd().split('\n');
    const events = lines
      .map((line) => JSON.parse(line).event)
      .filter(({ heartbeat }) => !heartbeat);
    expect(events.map(({ sequence }) => BigInt(sequence))).toEqual(stored(watched));
    expect(events.at(-1)).toHaveProperty('result.stopReason', 'cancelled');
  });

  it('resume after the last event id, and end the retries of an EventSource after the last event (SYS-2)', async () => {
    const watched = await cancelled();
    const all = await (await get(`/v1/runs/${runId}/events`, { accept: SSE })).text();
    const ids = [...all.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(stored(watched).map(Number));
    const rest = { accept: SSE, 'last-event-id': String(ids[0]) };
    const resumed = await (await get(`/v1/runs/${runId}/events`, rest)).text();
    expect(all.endsWith(resumed)).toBe(true);
    expect(resumed).not.toContain(`id: ${ids[0]}\n`);
    const query = await (await get(`/v1/runs/${runId}/events?after_sequence=${ids[0]}`)).text();
    expect(query.trimEnd().split('\n')).toHaveLength(ids.length - 1);
    const none = { accept: SSE, 'last-event-id': String(ids.at(-1)) };
    expect((await get(`/v1/runs/${runId}/events`, none)).status).toBe(204);
  });

  it('send a heartbeat while nothing happens (SYS-4)', async () => {
    const response = await get('/v1/approvals/events', { accept: SSE });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toContain(': heartbeat\n\n');
    await reader?.cancel();
  });

  it.each([
    ['an unknown run', () => get('/v1/runs/run_unknown/events'), 404, 'RUN_NOT_FOUND'],
    [
      'the run of another tenant',
      () => get(`/v1/runs/${runId}/events`, {}, 'eve'),
      404,
      'RUN_NOT_FOUND',
    ],
    ['a malformed id', () => get('/v1/runs/No/events'), 400, 'INVALID_FIELD'],
    ['a misspelled parameter', () => get('/v1/approvals/events?run=1'), 400, 'MALFORMED_MESSAGE'],
    ['another role', () => get('/v1/approvals/events', {}, 'boris'), 403, 'ROLE_REQUIRED'],
    ['no key', () => get('/v1/approvals/events', { authorization: '' }), 401, 'TOKEN_MISSING'],
  ] as const)(
    'return the error of the RPC for a request with %s (SYS-3, SYS-6)',
    async (_, send, status, reason) => {
      const response = await send();
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({
        message: expect.any(String),
        details: expect.arrayContaining([
          expect.objectContaining({ debug: expect.objectContaining({ reason }) }),
        ]),
      });
    },
  );

  it('can be read by pages of allowed origins only (SYS-2)', async () => {
    const allowed = await get('/v1/runs/run_unknown/events', { origin: 'https://console.example' });
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://console.example');
    const other = await get('/v1/runs/run_unknown/events', { origin: 'https://evil.example' });
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
  });
});
