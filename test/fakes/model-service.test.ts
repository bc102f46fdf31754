import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import {
  type GenerateResponse,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { createVerifier, internalGate, trustSigners } from '@writ/identity';
import { systemClock, type WritError } from '@writ/kernel';
import { startKeyPeer } from '@writ/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FakeMeter, modelTimeout } from '../../services/agent-worker/test/fake-meter.ts';
import { FaultSwitches } from '../../services/agent-worker/test/fault-switches.ts';
import { MeterWorld } from '../../services/execution-meter/test/meter-fixture.ts';
import { ask } from '../../services/execution-meter/test/model-calls.ts';

interface Ask {
  readonly callId: string;
  readonly deltas?: boolean;
  readonly temperature?: number;
}

interface Generated {
  readonly chunks: readonly GenerateResponse['chunk'][];
  readonly error: WritError | undefined;
}

interface Meter {
  generate(ask: Ask): Promise<Generated>;
  /** Number of calls that were paid. */
  paid(): Promise<number>;
}

async function collected(stream: AsyncIterable<GenerateResponse>): Promise<Generated> {
  const chunks: GenerateResponse['chunk'][] = [];
  try {
    for await (const { chunk } of stream) chunks.push(chunk);
    return { chunks, error: undefined };
  } catch (error) {
    return { chunks, error: error as WritError };
  }
}

const TEXT = 'Hello from the model.';

async function fakeMeter(answers: boolean): Promise<Meter> {
  const fake = new FakeMeter(new FaultSwitches(), () => {
    if (answers) return TEXT;
    throw modelTimeout();
  });
  const supervisor = await startKeyPeer('supervisor');
  const worker = await startKeyPeer('agent-worker');
  const trust = trustSigners(supervisor.signer, worker.signer);
  const verifier = createVerifier({ trust, clock: systemClock });
  const gate = internalGate({ service: 'execution-meter', verifier, enforceSlotGrants: false });
  const peer = await startKeyPeer('execution-meter', { routes: fake.routes(), gate });
  onTestFinished(async () => {
    for (const each of [supervisor, worker, peer]) await each.close();
  });
  const client = worker.client(ModelService, {
    audience: 'execution-meter',
    address: peer.address,
  });
  const agent = { name: 'support', instance: 'support-1' };
  const { executionMeterToken: agentToken } = await supervisor.agentCredentials({
    tenant: 'acme',
    runId: 'run-1',
    agent,
  });
  return {
    generate: (request) => collected(client.generate(ask(request), { agentToken, epoch: 1n })),
    paid: async () => fake.paid.length,
  };
}

async function realMeter(answers: boolean): Promise<Meter> {
  const world = await MeterWorld.start({
    scripts: { hello: [{ text: TEXT, ...(!answers && { delay_ms: 60_000 }) }] },
    settings: 'max_retries: 0',
  });
  onTestFinished(() => world[Symbol.asyncDispose]());
  await world.openTab();
  const credentials = await world.credentials();
  return {
    generate: (request) =>
      collected(
        world.model.generate(
          ask({ ...request, ...(!answers && { timeout: durationFromMs(50) }) }),
          credentials,
        ),
      ),
    paid: async () =>
      Number(
        (
          await world.tab.getTab({
            tab: { tenant: 'acme', runId: 'run-1', agentInstance: 'support-1' },
          })
        ).tab?.totals?.turns ?? 0n,
      ),
  };
}

describe.each([
  ['the meter', realMeter],
  ["the worker's fake meter", fakeMeter],
])('Generate of %s', (_, start) => {
  it('streams the text, and ends with one finished chunk (EM-9)', async () => {
    const meter = await start(true);
    const { chunks, error } = await meter.generate({ callId: 'op-1', deltas: true });
    expect(error).toBeUndefined();
    const cases = chunks.map((chunk) => chunk.case);
    expect(cases[0]).toBe('attemptStarted');
    expect(new Set(cases.slice(1, -1))).toEqual(new Set(['textDelta']));
    const last = chunks.at(-1);
    expect(last).toMatchObject({
      case: 'finished',
      value: {
        endReason: EndReason.END_TURN,
        message: { parts: [{ kind: { case: 'text', value: TEXT } }] },
        nearBudget: false,
      },
    });
  });

  it('answers a repeat with the record, without deltas and without payment (EM-7)', async () => {
    const meter = await start(true);
    const first = await meter.generate({ callId: 'op-1', deltas: true });
    const again = await meter.generate({ callId: 'op-1', deltas: true });
    expect(again.chunks.map((chunk) => chunk.case)).toEqual(['finished']);
    expect(again.chunks[0]).toMatchObject({ value: { message: finishedOf(first).message } });
    expect(await meter.paid()).toBe(1);
  });

  it('rejects a call_id that was used for another request (EM-7)', async () => {
    const meter = await start(true);
    await meter.generate({ callId: 'op-1' });
    const { error } = await meter.generate({ callId: 'op-1', temperature: 1 });
    expect(error).toMatchObject({ kind: 'invalid_argument', reason: 'CALL_ID_REUSED' });
    expect(await meter.paid()).toBe(1);
  });

  it('reports a model that does not answer in the finished chunk and in the status (EM-9)', async () => {
    const meter = await start(false);
    const { chunks, error } = await meter.generate({ callId: 'op-1' });
    expect(chunks.at(-1)).toMatchObject({
      case: 'finished',
      value: { failure: { stopReason: 'llm_timeout', reason: 'LLM_TIMEOUT' } },
    });
    expect(error).toMatchObject({
      kind: 'deadline_exceeded',
      reason: 'LLM_TIMEOUT',
      metadata: { stop_reason: 'llm_timeout' },
    });
  });
});

function finishedOf({ chunks }: Generated) {
  const last = chunks.at(-1);
  if (last?.case !== 'finished') throw new Error('The stream has no finished chunk.');
  return last.value;
}
