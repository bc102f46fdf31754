import assert from 'node:assert/strict';
import { type Caller, startCaller } from './caller.ts';
import type { MeterStage } from './meter-stage.ts';
import type { ModelAnswer, ModelOrder } from './model-caller.ts';

/**
 * A worker is killed after the provider has answered, half of the times when it has just heard of it and
 * half of the times earlier: the next one resumes with the recorded answer, and the provider's own log
 * shows one call (EM-7).
 */
export async function answeredThenKilled(stage: MeterStage, { times }: { readonly times: number }) {
  const { program } = await stage.up();
  const { address } = program;
  const agent = { runId: `killed-${times}`, instance: 'desk-1' };
  await stage.openTab(agent);
  const serviceToken = await stage.worker.serviceToken('execution-meter')();
  let replayed = 0;
  for (let time = 0; time < times; time += 1) {
    const order = { address, serviceToken, callId: `op-${time}`, model: 'quick' };
    const requestId = stage.requestId(agent, order.callId);
    const [first, second] = await Promise.all([
      startCaller('model-caller.ts'),
      startCaller('model-caller.ts'),
    ]);
    try {
      const lease = async (lost: bigint) => ({
        ...order,
        ...(await stage.credentials(agent, { epoch: BigInt(2 * time) + lost })),
      });
      const told = first.ask((await lease(1n)) satisfies ModelOrder);
      if (time % 2 === 0) await told;
      await stage.simulator.until(
        ({ request_id, outcome }) => request_id === requestId && outcome === 'answered',
      );
      await first.kill();
      const again = await answerOf(second, await lease(2n));
      assert.equal(again.text, 'Quick.');
      assert.equal(again.attempts, 1, 'The call was made again.');
      if (time % 2 === 0) assert.ok(again.replayed, 'The answer is not the recorded one.');
      if (again.replayed) replayed += 1;
    } finally {
      await Promise.all([first.kill(), second.kill()]);
    }
    const asked = stage.simulator.requests().filter(({ request_id }) => request_id === requestId);
    assert.equal(asked.length, 1, 'The provider was asked more than once.');
  }
  return { times, 'answered from the record': replayed };
}

async function answerOf(caller: Caller, order: ModelOrder): Promise<ModelAnswer> {
  const answer = await caller.ask(order);
  if (answer === undefined) throw new Error('The second worker died.');
  return answer as ModelAnswer;
}
