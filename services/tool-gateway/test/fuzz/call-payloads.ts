import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { isWritError } from '@writ/kernel';
import { type Fixture, startFixture } from '../gateway-fixture.ts';
import { type Payload, payloads } from './payloads.ts';

const AT_A_TIME = 64;
const EVERY = 1_000_000_000;

/**
 * Puts argument texts through CallTool of a gateway that runs, over the wire, each under a writ for
 * exactly it; afterwards the gateway must execute a good call.
 * @returns what was wrong, a sentence each
 */
export async function callPayloads(count: number, seed: number): Promise<readonly string[]> {
  const limits = { max_calls_per_agent: EVERY, max_repeats: EVERY };
  const fixture = await startFixture({
    tools: { pay: { side_effect: 'destructive', ...limits } },
  });
  try {
    const source = payloads(seed);
    const problems: string[] = [];
    let made = 0;
    const one = async (): Promise<void> => {
      while (made < count) {
        made += 1;
        const callId = `op-${made}`;
        const problem = await callOne(fixture, callId, source.next().value);
        if (problem !== undefined) problems.push(`seed ${seed}, ${callId}: ${problem}`);
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, one));
    const last = await fixture.call({ callId: 'op-last', argumentsJson: '{"to":"anna"}' });
    if (last.status !== CallStatus.OK) problems.push('It executes no good call any more.');
    return problems;
  } finally {
    await fixture[Symbol.asyncDispose]();
  }
}

async function callOne(
  fixture: Fixture,
  callId: string,
  { text, expected }: Payload,
): Promise<string | undefined> {
  // What is no Unicode cannot be sent; what is sent in its place may be good or bad.
  const argumentsJson = text.toWellFormed();
  let became: 'accepted' | 'refused';
  try {
    const { status } = await fixture.call({ callId, argumentsJson });
    if (status !== CallStatus.OK && status !== CallStatus.REFUSED) return `It became ${status}.`;
    became = status === CallStatus.OK ? 'accepted' : 'refused';
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'invalid_argument') return String(error);
    became = 'refused';
  }
  const isJudged = text === argumentsJson && (expected === 'accepted' || expected === 'refused');
  return isJudged && became !== expected ? `It was ${became}: ${text.slice(0, 200)}` : undefined;
}
