import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgePayload } from './fuzz/judge-payload.ts';
import { INVALID_ARGUMENTS, payloads } from './fuzz/payloads.ts';
import { type Fixture, startFixture } from './gateway-fixture.ts';

let fixture: Fixture;
let calls = 0;

beforeAll(async () => {
  const tool = { max_calls_per_agent: 1_000_000, max_repeats: 1_000_000 };
  fixture = await startFixture({ tools: { pay: { side_effect: 'destructive', ...tool } } });
});

afterAll(() => fixture[Symbol.asyncDispose]());

const call = (argumentsJson: string) => {
  calls += 1;
  return fixture.call({ argumentsJson, callId: `op-${calls}` });
};

describe('invalid arguments (TG-3, SYS-4)', () => {
  it.each(Object.entries(INVALID_ARGUMENTS))(
    'refuses %s with a message that is a sentence',
    async (_, argumentsJson) => {
      const { executions } = fixture.world;
      const before = executions.length;
      const answer = await call(argumentsJson);
      expect(answer).toMatchObject({
        status: CallStatus.REFUSED,
        stopReason: 'tool_bad_args:pay',
        message: expect.stringMatching(/^\S.*\.$/s),
      });
      expect(executions).toHaveLength(before);
    },
  );

  it('rejects more than 256 KiB before anything is recorded', async () => {
    const huge = JSON.stringify({ to: 'x'.repeat(262_144) });
    await expect(call(huge)).rejects.toMatchObject({ kind: 'invalid_argument' });
  });

  it('names unknown arguments, in a message of limited length', async () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`arg_${n}`, n]));
    const answer = await call(JSON.stringify({ to: 'anna', ...many }));
    expect(answer).toMatchObject({ stopReason: 'tool_bad_args:pay' });
    expect(answer.message).toContain('arg_0');
    expect(answer.message.length).toBeLessThan(4_096);
  });

  it('accepts and refuses 20,000 fuzzed argument texts as expected', () => {
    const source = payloads(20_261_121);
    for (let index = 0; index < 20_000; index += 1) {
      const payload = source.next().value;
      expect(judgePayload(payload), payload.text).toBeUndefined();
    }
  });

  it('answers 300 fuzzed calls over the wire and executes a valid call afterwards', async () => {
    const source = payloads(7);
    const statuses = new Set<CallStatus>();
    const texts = Array.from({ length: 300 }, () => source.next().value.text.toWellFormed());
    for (let from = 0; from < texts.length; from += 100) {
      const answers = await Promise.all(texts.slice(from, from + 100).map(call));
      for (const { status } of answers) statuses.add(status);
    }
    expect(statuses).toEqual(new Set([CallStatus.OK, CallStatus.REFUSED]));
    expect(await call('{"to":"anna"}')).toMatchObject({ status: CallStatus.OK });
  });
});
