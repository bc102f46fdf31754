import assert from 'node:assert/strict';
import { type Caller, startCaller } from './caller.ts';
import type { MeterHarness } from './meter-harness.ts';
import type { ModelAnswer, ModelRequest } from './model-caller.ts';

/**
 * Kills a worker after the provider has answered, either after the worker received the answer or before.
 * The next worker resumes with the recorded answer, and the provider's log shows one request (EM-7).
 */
export async function answeredThenKilled(
  harness: MeterHarness,
  { times }: { readonly times: number },
) {
  const { program } = await harness.running();
  const { address } = program;
  const agent = { runId: `killed-${times}`, instance: 'payer-1' };
  await harness.openTab(agent);
  const serviceToken = await harness.worker.serviceToken('execution-meter')();
  let replayed = 0;
  let providerRequests = 0;
  for (let time = 0; time < times; time += 1) {
    const call = { address, serviceToken, callId: `op-${time}`, model: 'quick' };
    const requestId = harness.requestId(agent, call.callId);
    const [first, secondCaller] = await Promise.all([
      startCaller('model-caller.ts'),
      startCaller('model-caller.ts'),
    ]);
    try {
      const requestUnder = async (lease: bigint) => ({
        ...call,
        ...(await harness.credentials(agent, { epoch: BigInt(2 * time) + lease })),
      });
      const firstAnswer = first.send((await requestUnder(1n)) satisfies ModelRequest);
      if (time % 2 === 0) await firstAnswer;
      await harness.simulator.until(
        ({ request_id, outcome }) => request_id === requestId && outcome === 'answered',
      );
      await first.kill();
      const second = await answerOf(secondCaller, await requestUnder(2n));
      assert.equal(second.text, 'Quick.');
      assert.equal(second.attempts, 1, 'The meter made a second attempt.');
      if (time % 2 === 0) assert.ok(second.replayed, 'The answer is not the recorded one.');
      if (second.replayed) replayed += 1;
    } finally {
      await Promise.all([first.kill(), secondCaller.kill()]);
    }
    const requests = harness.simulator
      .requests()
      .filter(({ request_id }) => request_id === requestId);
    assert.equal(requests.length, 1, 'The provider received more than one request.');
    providerRequests += requests.length;
  }
  return { times, 'provider requests': providerRequests, 'recorded answers': replayed };
}

async function answerOf(caller: Caller, request: ModelRequest): Promise<ModelAnswer> {
  const answer = await caller.send(request);
  if (answer === undefined) throw new Error('The second worker died.');
  return answer as ModelAnswer;
}
