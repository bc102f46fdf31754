import { create } from '@bufbuild/protobuf';
import {
  CallToolRequestSchema,
  ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { createVerifier, trustSigners } from '@writ/identity';
import { isWritError, systemClock } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { seeded } from '@writ/testing/random';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPresentedCall } from '../src/app/calls/presented-call.ts';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { MUTATED, mutate, type SentCall } from './mutations/mutate-call.ts';

const SEED = 20_261_121;
/** Timeout for many concurrent calls on a busy machine. */
const LONG_TIMEOUT_MS = 60_000;

describe('a call or writ with any mutation', () => {
  let fixture: Fixture;
  let sent: SentCall;
  beforeAll(async () => {
    fixture = await startFixture();
    const { writ = '', tool = '', argumentsJson = '', call } = await fixture.request();
    const { tenant = '', runId = '', agentInstance = '', callId = '' } = call ?? {};
    sent = { call: { tenant, runId, agentInstance, callId }, tool, argumentsJson, writ };
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it('is rejected by the writ check, 10,000 times (TG-1, SV-6)', async () => {
    const trust = trustSigners(fixture.supervisor.signer);
    const verifier = createVerifier({ trust, clock: systemClock });
    const call: CallContext = {
      method: ToolGatewayService.method.callTool,
      signal: new AbortController().signal,
      remainingMs: Infinity,
      header: () => undefined,
      caller: { epoch: 1n, service: { name: 'agent-worker', replica: 'w-1', tenants: [] } },
      log: createTelemetry({ service: 'test', logLevel: 'silent' }).log,
      traceparent: '',
    };
    const read = (one: SentCall) =>
      readPresentedCall({ verifier }, create(CallToolRequestSchema, one), call);
    await read(sent);
    const chance = seeded(SEED);
    const tried = new Map<string, number>();
    for (let n = 0; n < 10_000; n += 1) {
      const { what, call: other } = mutate(sent, chance);
      tried.set(what, (tried.get(what) ?? 0) + 1);
      const kind = await read(other).then(
        () => 'admitted',
        (error: unknown) => (isWritError(error) ? error.kind : String(error)),
      );
      if (kind !== 'permission_denied') expect.fail(`${what}: ${kind}: ${JSON.stringify(other)}`);
    }
    expect([...tried.keys()].toSorted()).toEqual(MUTATED.toSorted());
    await read(sent);
  });

  it('is rejected over the wire without an execution, 300 times (TG-1)', async () => {
    const chance = seeded(SEED + 1);
    const answers = Array.from({ length: 300 }, async () => {
      const { what, call } = mutate(sent, chance);
      const error = await fixture.asWorker
        .callTool(call, { epoch: 1n, timeoutMs: LONG_TIMEOUT_MS })
        .then(
          () => undefined,
          (failure: unknown) => failure,
        );
      // A mutated id can fail validation before the writ check, and an unknown key id can fail with KEYS_UNAVAILABLE,
      // because keys are fetched at most once a second.
      const kinds = ['permission_denied', 'invalid_argument', 'unavailable'];
      if (!isWritError(error) || !kinds.includes(error.kind)) expect.fail(`${what}: ${error}`);
    });
    await Promise.all(answers);
    expect(fixture.world.executions).toEqual([]);
    expect(await fixture.gateway.store.db.selectFrom('calls').selectAll().execute()).toEqual([]);
  });

  it('is rejected, and the original call, sent 1,000 times at once, is executed and recorded once (TG-1)', async () => {
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, () =>
        fixture.asWorker.callTool(sent, { epoch: 1n, timeoutMs: LONG_TIMEOUT_MS }),
      ),
    );
    expect(fixture.world.executions).toHaveLength(1);
    expect(new Set(answers.map(({ receipt }) => receipt)).size).toBe(1);
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    const { store } = fixture.gateway;
    expect(await store.db.selectFrom('calls').selectAll().execute()).toHaveLength(1);
    expect(await store.db.selectFrom('receipts').selectAll().execute()).toHaveLength(1);
  });
});
