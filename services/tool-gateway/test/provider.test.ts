import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import {
  type InvokeRequest,
  ToolProviderService,
} from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import { InvalidRequestError, sha256Hex, UnavailableError } from '@writ/kernel';
import {
  type CallContext,
  createRpcServer,
  type Handlers,
  type RpcServer,
  route,
  UnsentCallError,
} from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { isPostgresAvailable, postgresLocation } from '@writ/testing/postgres';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fixture, type FixtureOptions, startFixture } from './gateway-fixture.ts';
import { TOOLS } from './tools-yaml.ts';

type Answer = Awaited<ReturnType<Handlers<typeof ToolProviderService>['invoke']>>;

let fixture: Fixture;
let provider: RpcServer;
let seen: { readonly request: InvokeRequest; readonly call: CallContext }[];
let answer: (request: InvokeRequest, call: CallContext) => Promise<Answer>;
let arrived: PromiseWithResolvers<void>;

const json = (content: string): Answer => ({
  outcome: { case: 'result', value: { kind: ResultKind.JSON, content } },
});
const hang = () => new Promise<never>(() => undefined);

async function serve(port: number): Promise<RpcServer> {
  const server = await createRpcServer({
    host: '127.0.0.1',
    port,
    routes: [
      route(ToolProviderService, {
        describeTools: async () => ({ tools: [] }),
        invoke: (request, call) => {
          seen.push({ request, call });
          arrived.resolve();
          return answer(request, call);
        },
      }),
    ],
    gate: async () => ({}),
    telemetry: createTelemetry({ service: 'provider', logLevel: 'silent' }),
  });
  server.setServing(true);
  return server;
}

beforeEach(async () => {
  seen = [];
  arrived = Promise.withResolvers();
  answer = async () => json('{"status":"ok"}');
  provider = await serve(0);
  fixture = await startWithProvider();
});

async function startWithProvider(config: FixtureOptions['config'] = {}): Promise<Fixture> {
  const far = { source: 'far', timeout: '20s', max_calls_per_agent: 9, max_repeats: 9 } as const;
  return await startFixture({
    config,
    tools: {
      ...TOOLS,
      far_look: { side_effect: 'read_only', ...far },
      far_pay: { side_effect: 'destructive', ...far },
      far_brief_look: { side_effect: 'read_only', ...far, timeout: '2s' },
      far_brief_charge: { side_effect: 'idempotent', ...far, timeout: '2s' },
    },
    sources: {
      far: { kind: 'provider', address: provider.address, max_in_flight: 2, max_queued: 0 },
    },
  });
}

afterEach(async () => {
  await fixture[Symbol.asyncDispose]();
  await provider.close(0);
});

const call = (tool: string, callId = 'op-1') => fixture.call({ tool, callId });

describe('a tool provider (TG-6)', () => {
  it('receives the signed bytes, the idempotency key, the deadline, the trace and a service token (SYS-1)', async () => {
    answer = async () => json('{ "status": "ok" }');
    const argumentsJson = '{ "to" : "anna" }';
    const given = await fixture.call({ tool: 'far_pay', argumentsJson });
    expect(given).toMatchObject({
      status: CallStatus.OK,
      result: { kind: ResultKind.JSON, content: '{ "status": "ok" }' },
    });
    expect(seen[0]?.request).toMatchObject({
      tool: 'far_pay',
      argumentsJson,
      idempotencyKey: expect.stringMatching(/^idem_/),
      tenant: 'acme',
      runId: 'run_1',
      agentName: 'payer',
      callId: 'op-1',
    });
    expect(seen[0]?.request.deadline).toBeDefined();
    expect(seen[0]?.call.header('authorization')).toMatch(/^Bearer /);
    expect(seen[0]?.call.header('writ-agent-token')).toBeUndefined();
    expect(seen[0]?.call.remainingMs).toBeLessThan(Infinity);
    // The outgoing call is a child span of the execution.
    const spans = fixture.spans.spans();
    const execution = spans.find(({ name }) => name === 'execute_tool far_pay');
    const outgoing = spans.find(({ parentSpanId }) => parentSpanId === execution?.spanId);
    expect(seen[0]?.call.header('traceparent')).toBe(
      `00-${execution?.traceId}-${outgoing?.spanId}-01`,
    );
  });

  it('may return text or the URL of an image', async () => {
    answer = async () => ({
      outcome: { case: 'result', value: { kind: ResultKind.TEXT, content: 'Hello.' } },
    });
    expect((await call('far_look', 'op-1')).result).toMatchObject({ kind: ResultKind.TEXT });
    const image = {
      kind: ResultKind.IMAGE,
      content: 'https://x.example/a.png',
      mediaType: 'image/png',
    };
    answer = async () => ({ outcome: { case: 'result', value: image } });
    expect((await call('far_look', 'op-2')).result).toMatchObject(image);
  });

  it.each<[string, Answer]>([
    ['an array', json('[]')],
    ['invalid JSON', json('{')],
    ['a duplicate key', json('{"a":1,"a":2}')],
    ['nothing', { outcome: { case: undefined } }],
    [
      'an image without an http URL',
      {
        outcome: {
          case: 'result',
          value: { kind: ResultKind.IMAGE, content: 'javascript:alert(1)' },
        },
      },
    ],
    ['an unknown kind', { outcome: { case: 'result', value: { content: '{}' } } }],
  ])('gets `tool_bad_result` for %s', async (_, given) => {
    answer = async () => given;
    expect(await call('far_look')).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_bad_result:far_look',
    });
  });

  it('fails a call with its own message, a rejection or an unexpected error', async () => {
    answer = async () => ({ outcome: { case: 'failure', value: { message: 'No such payee.' } } });
    expect(await call('far_pay', 'op-1')).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:far_pay',
      message: 'No such payee.',
    });
    answer = async () => {
      throw new InvalidRequestError('INVALID_ARGUMENT', 'A secret.');
    };
    expect(await call('far_pay', 'op-2')).toMatchObject({
      stopReason: 'tool_error:far_pay',
      message: 'The provider of far_pay rejected the call.',
    });
    answer = async () => {
      throw new Error('A secret.');
    };
    expect(await fixture.call({ tool: 'far_pay', callId: 'op-3' })).toMatchObject({
      stopReason: 'tool_error:far_pay',
      message: 'far_pay failed.',
    });
  });
});

describe('a faulty provider affects only its own calls (SYS-4)', () => {
  it('leaves an unknown outcome for a destructive tool only, when it dies during calls', async () => {
    answer = hang;
    const lost = Promise.all([call('far_pay', 'op-1'), call('far_look', 'op-2')]);
    await vi.waitFor(() => expect(seen).toHaveLength(2));
    await provider.close(0);
    expect(await lost).toMatchObject([
      { status: CallStatus.UNKNOWN, stopReason: 'outcome_unknown:far_pay' },
      { status: CallStatus.ERROR, stopReason: 'tool_error:far_look' },
    ]);
    expect(await call('pay', 'op-3')).toMatchObject({ status: CallStatus.OK });
  });

  it('fails calls when it is unreachable and nothing was sent', async () => {
    await provider.close(0);
    expect(await call('far_pay', 'op-1')).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:far_pay',
      message: 'The provider of far_pay is unreachable.',
    });
    expect(await call('pay', 'op-2')).toMatchObject({ status: CallStatus.OK });
  });

  const unsent = 'no replica available: 127.0.0.1:1 cannot be reached (ECONNREFUSED).';
  it.each([
    ['text', new UnavailableError('UNAVAILABLE', unsent)],
    [
      'text and method',
      new UnavailableError(
        'UNAVAILABLE',
        `writ.tool.v1.ToolProviderService/Invoke at 127.0.0.1:1: ${unsent}`,
        { method: 'writ.tool.v1.ToolProviderService/Invoke', address: '127.0.0.1:1' },
      ),
    ],
    ['class', new UnsentCallError('UNAVAILABLE', unsent)],
  ])(
    'leaves an unknown outcome when its error has the %s of an error for an unsent call (TG-5)',
    async (_, error) => {
      answer = async () => {
        throw error;
      };
      expect(await call('far_pay')).toMatchObject({
        status: CallStatus.UNKNOWN,
        stopReason: 'outcome_unknown:far_pay',
      });
      expect(seen).toHaveLength(1);
    },
  );

  it('receives a cancellation when it hangs, and its calls end at their timeout', async () => {
    answer = hang;
    const hanging = Promise.all([call('far_brief_look', 'op-1'), call('far_brief_charge', 'op-2')]);
    await arrived.promise;
    expect(await call('pay', 'op-4')).toMatchObject({ status: CallStatus.OK });
    expect(await hanging).toMatchObject([
      { status: CallStatus.ERROR, message: expect.stringContaining('timeout of 2000 ms') },
      { status: CallStatus.UNKNOWN },
    ]);
    expect(seen.every(({ call: { signal } }) => signal.aborted)).toBe(true);
  });

  it('has its calls cancelled by a freeze, with unknown outcomes for destructive tools (TG-5)', async () => {
    answer = hang;
    const stopped = call('far_pay');
    await arrived.promise;
    await fixture.asSupervisor.freeze({
      order: {
        orderId: 'halt_1',
        scope: { kind: { case: 'tenant', value: 'acme' } },
        cause: FreezeCause.HALT,
        reason: 'It pays too much.',
      },
    });
    expect(await stopped).toMatchObject({ status: CallStatus.UNKNOWN });
  });

  it('uses up only its own slots when it is slow', async () => {
    const { promise, resolve } = Promise.withResolvers<Answer>();
    answer = () => promise;
    const slow = Promise.all([call('far_look', 'op-1'), call('far_look', 'op-2')]);
    await vi.waitUntil(() => seen.length === 2);
    await expect(call('far_look', 'op-3')).rejects.toMatchObject({ reason: 'TOOL_QUEUE_FULL' });
    expect(await call('pay', 'op-4')).toMatchObject({ status: CallStatus.OK });
    resolve(json('{}'));
    expect(await slow).toMatchObject([{ status: CallStatus.OK }, { status: CallStatus.OK }]);
    expect(await call('far_look', 'op-3')).toMatchObject({ status: CallStatus.OK });
  });

  it('fails a read-only call, and leaves a destructive one unknown, when its response is too large', async () => {
    answer = async () => json(JSON.stringify({ flood: 'x'.repeat(5 * 1024 * 1024) }));
    expect(await call('far_look', 'op-1')).toMatchObject({
      status: CallStatus.ERROR,
      stopReason: 'tool_error:far_look',
    });
    expect(await call('pay', 'op-2')).toMatchObject({ status: CallStatus.OK });
    expect(await call('far_pay', 'op-3')).toMatchObject({ status: CallStatus.UNKNOWN });
  });
});

describe.skipIf(!isPostgresAvailable())('a NUL character, which PostgreSQL cannot store', () => {
  beforeEach(async () => {
    await fixture[Symbol.asyncDispose]();
    fixture = await startWithProvider({ store: await postgresLocation() });
  });

  it.each<[string, Answer, Partial<CallToolResponse>]>([
    [
      'a text',
      { outcome: { case: 'result', value: { kind: ResultKind.TEXT, content: 'a\u0000b' } } },
      {
        status: CallStatus.OK,
        result: expect.objectContaining({
          kind: ResultKind.TEXT,
          content: 'a\ufffdb',
          fullSizeBytes: 5n,
          fullSha256: sha256Hex('a\ufffdb'),
        }),
      },
    ],
    [
      'an image',
      {
        outcome: {
          case: 'result',
          value: {
            kind: ResultKind.IMAGE,
            content: 'https://x.example/a\u0000.png',
            mediaType: 'image/\u0000png',
          },
        },
      },
      {
        status: CallStatus.OK,
        result: expect.objectContaining({
          content: 'https://x.example/a\ufffd.png',
          mediaType: 'image/\ufffdpng',
        }),
      },
    ],
    [
      'the message of a failure',
      { outcome: { case: 'failure', value: { message: 'No row a\u0000b.' } } },
      { status: CallStatus.ERROR, message: 'No row a\ufffdb.' },
    ],
  ])('is replaced in %s, so that the outcome is recorded (TG-5, TG-8)', async (_, given, want) => {
    answer = async () => given;
    const first = await call('far_pay');
    expect(first).toMatchObject(want);
    const { claims } = await fixture.receipt(first.receipt);
    const content = first.result?.content;
    expect(claims.resultSha256).toBe(content === undefined ? '' : sha256Hex(content));
    expect(await call('far_pay')).toMatchObject({ ...want, replayed: true });
    expect(seen).toHaveLength(1);
  });
});
