import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const BUF = resolve(import.meta.dirname, '../../node_modules/.bin/buf');
const run = promisify(execFile);

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

/** Calls the public endpoint with the schema from server reflection. */
async function bufCurl(method: string, request: object, protocol: string): Promise<string> {
  const { stdout } = await run(BUF, [
    'curl',
    ...['--protocol', protocol, '--http2-prior-knowledge'],
    ...['--header', `authorization: Bearer ${test.platform.apiKey}`],
    ...['--data', JSON.stringify(request)],
    `${test.platform.edgeUrl}/${method}`,
  ]);
  return stdout;
}

describe('a client without generated code', () => {
  it.each(['grpc', 'grpcweb', 'connect'])(
    'starts a run and watches it to its end over %s through reflection (SYS-2)',
    async (protocol) => {
      const stdout = await bufCurl(
        'writ.run.v1.RunService/RunAgent',
        {
          start: {
            requestId: `by-${protocol}`,
            agent: 'refund-worker',
            goal: 'Refund user 42.',
            model: 'sim-auto-1000',
          },
        },
        protocol,
      );
      expect(stdout).toContain('"stopReason": "success"');
    },
  );

  it('starts a run and reads its result in JSON over plain HTTP (SYS-2)', async () => {
    const started = await post('writ.run.v1.RunService/StartRun', {
      requestId: 'by-json',
      agent: 'refund-worker',
      goal: 'Refund user 42.',
      model: 'sim-auto-1000',
    });
    expect(started.status).toBe(200);
    const { run: begun } = (await started.json()) as { run: { runId: string } };
    await bufCurl('writ.run.v1.RunService/WatchRun', { runId: begun.runId }, 'grpc');
    const got = await post('writ.run.v1.RunService/GetRun', { runId: begun.runId });
    expect(await got.json()).toMatchObject({
      run: { state: 'RUN_STATE_COMPLETED', result: { stopReason: 'success' } },
    });
  });

  it('receives an error that names the invalid field and the available agents (SYS-3)', async () => {
    const malformed = await post('writ.run.v1.RunService/StartRun', {
      requestId: 'r1',
      agent: 'refund-worker',
    });
    expect(malformed.status).toBe(400);
    expect(await malformed.json()).toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('goal'),
    });
    const unknown = await post('writ.run.v1.RunService/StartRun', {
      requestId: 'r1',
      agent: 'unknown',
      goal: 'x',
    });
    expect(await unknown.json()).toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('refund-worker'),
    });
  });

  it('is rejected without a key before its request is validated (SYS-4, SYS-6)', async () => {
    const response = await fetch(`${test.platform.edgeUrl}/writ.run.v1.RunService/StartRun`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(response.status).toBe(401);
  });
});

function post(method: string, request: object): Promise<Response> {
  return fetch(`${test.platform.edgeUrl}/${method}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${test.platform.apiKey}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(request),
  });
}
