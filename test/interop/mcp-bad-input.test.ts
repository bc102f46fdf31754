import { setTimeout as pause } from 'node:timers/promises';
import { newId } from '@writ/kernel';
import { expect, it, vi } from 'vitest';
import { counter } from '../agent-proxy/counter-tools.ts';
import { counterPlatform, post, postModern, startMcpRun } from '../agent-proxy/mcp-run.ts';
import { begin, rawRequest } from '../agent-proxy/raw-request.ts';

const WIPE = { name: 'wipe_disk', arguments: { disk: 'sda' } };
const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: WIPE };

it('refuses malformed, cross-site and unauthorized requests before a tool runs (AP-3, SYS-4, BD-1)', async () => {
  const test = await counterPlatform();
  const run = await startMcpRun(test);
  const { origin } = run.url;
  const status = async (
    message: unknown,
    headers: Record<string, string> = {},
    token = run.token,
  ) => (await post({ ...run, token }, message, headers)).status;
  const deep = `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`;
  const wipeArgs = CALL.params.arguments;
  const withArgs = (args: string) => JSON.stringify(CALL).replace(JSON.stringify(wipeArgs), args);
  expect({
    'no token': await status(CALL, {}, ''),
    'a changed token': await status(CALL, {}, `${run.token.slice(0, -6)}AAAAAA`),
    'an API key of the platform': await status(CALL, {}, test.platform.apiKey),
    'an Origin header of another site': await status(CALL, { origin: 'https://evil.example' }),
    'no JSON': await status('hello'),
    'a batch': await status([CALL, CALL]),
    'a number that would be rounded': await status(withArgs('{"disk":12345678901234567890}')),
    'a key twice': await status(withArgs('{"disk":"a","disk":"b"}')),
    '100 levels of nesting': await status(withArgs(deep)),
    'four megabytes': await status(withArgs(`{"disk":"${'x'.repeat(4 * 1024 * 1024)}"}`)),
    'plain text': await status(CALL, { 'content-type': 'text/plain' }),
  }).toEqual({
    'no token': 401,
    'a changed token': 401,
    'an API key of the platform': 403,
    'an Origin header of another site': 403,
    'no JSON': 400,
    'a batch': 400,
    'a number that would be rounded': 400,
    'a key twice': 400,
    '100 levels of nesting': 400,
    'four megabytes': 413,
    'plain text': 415,
  });
  const raw = {
    url: run.url,
    headers: {
      authorization: `Bearer ${run.token}`,
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(CALL),
  };
  const rebindingRequest = { ...raw, headers: { ...raw.headers, host: 'evil.example' } };
  const rebinding = await rawRequest(rebindingRequest);
  expect(rebinding.status).toBe(403);
  expect(JSON.parse(rebinding.text)).toMatchObject({
    error: { message: expect.stringMatching(/\.$/) },
  });
  expect((await rawRequest({ ...raw, url: `${run.url.href}/unknown` })).status).toBe(404);
  // This client disconnects before its message is complete.
  const leaving = begin(raw);
  leaving.on('error', () => undefined);
  await new Promise((resolve) => leaving.write(raw.body.slice(0, -1), resolve));
  leaving.destroy();
  const refused = await post({ ...run, token: '' }, CALL);
  const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
  expect(refused.headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${metadata}"`);
  expect(await (await fetch(metadata)).json()).toMatchObject({ resource: run.url.href });
  expect((await fetch(run.url, { headers: { authorization: `Bearer ${run.token}` } })).status).toBe(
    405,
  );
  // Header and body name different tools, or methods.
  for (const headers of [{ 'mcp-name': 'other' }, { 'mcp-method': 'tools/list' }]) {
    const { status: code, error } = await postModern(run, 'tools/call', WIPE, { headers });
    expect([code, error?.code]).toEqual([400, -32_020]);
  }
  const unknown = await postModern(run, 'tools/call', { name: 'unknown', arguments: {} });
  expect(unknown.error).toMatchObject({ code: -32_602, message: 'Unknown tool: unknown' });
  expect(counter.runs).toBe(0);
});

it('returns a policy block and invalid arguments as results with a reason, and refuses calls after the end of the run (AP-3)', async () => {
  const test = await counterPlatform();
  const run = await startMcpRun(test);
  const call = async (args: object) =>
    (await postModern(run, 'tools/call', { name: 'wipe_disk', arguments: args })).result;
  expect(await call({ disk: 'never' })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/^Nothing was executed\..*policy.*never/) }],
    _meta: {
      'io.writ/decision': expect.any(String),
      'io.writ/reason': 'supervisor_block:never',
    },
  });
  expect(await call({ disk: 5 })).toMatchObject({ isError: true });
  expect(counter.runs).toBe(0);
  await test.client.runs.closeRun({ requestId: newId('req'), runId: run.runId });
  await vi.waitFor(async () => expect((await post(run, CALL)).status).toBe(403));
  expect(counter.runs).toBe(0);
});

it('executes a destructive tool once for a thousand equal calls (AP-3, AP-4, TG-1)', async () => {
  const test = await counterPlatform();
  const run = await startMcpRun(test);
  const { promise, resolve } = Promise.withResolvers<void>();
  counter.gate = promise;
  const call = async () => {
    for (;;) {
      const { status, result } = await postModern(run, 'tools/call', WIPE);
      if (status !== 429) return result;
      await pause(100);
    }
  };
  const calls = Array.from({ length: 1_000 }, call);
  await vi.waitFor(() => expect(counter.runs).toBe(1));
  resolve();
  const results = await Promise.all(calls);
  const ok = results.filter((result) => result?.isError !== true);
  expect(ok.length).toBeGreaterThan(0);
  for (const result of ok) expect(result).toMatchObject({ structuredContent: { wiped: 1 } });
  for (const result of results.filter((one) => one?.isError === true)) {
    expect(result).toMatchObject({
      _meta: { 'io.writ/reason': expect.stringMatching(/^loop_detected:/) },
    });
  }
  expect(counter.runs).toBe(1);
});
