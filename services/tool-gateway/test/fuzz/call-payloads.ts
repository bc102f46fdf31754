import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { isWritError } from '@writ/kernel';
import { type Fixture, startFixture } from '../gateway-fixture.ts';
import { type Payload, payloads } from './payloads.ts';

const CONCURRENCY = 64;
const UNLIMITED = 1_000_000_000;

/**
 * Sends argument texts to CallTool of a running gateway, each with a matching writ. Afterwards the gateway must execute
 * a valid call.
 * @returns the problems, one sentence each
 */
export async function callPayloads(count: number, seed: number): Promise<readonly string[]> {
  const limits = { max_calls_per_agent: UNLIMITED, max_repeats: UNLIMITED };
  const fixture = await startFixture({
    tools: { pay: { side_effect: 'destructive', ...limits } },
  });
  try {
    const source = payloads(seed);
    const problems: string[] = [];
    let made = 0;
    const sendAll = async (): Promise<void> => {
      while (made < count) {
        made += 1;
        const callId = `op-${made}`;
        const problem = await callOne(fixture, callId, source.next().value);
        if (problem !== undefined) problems.push(`seed ${seed}, ${callId}: ${problem}`);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, sendAll));
    const last = await fixture.call({ callId: 'op-last', argumentsJson: '{"to":"anna"}' });
    if (last.status !== CallStatus.OK)
      problems.push('The gateway no longer executes a valid call.');
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
  // Ill-formed Unicode cannot be sent; its replacement may be valid or invalid.
  const argumentsJson = text.toWellFormed();
  let became: 'accepted' | 'refused';
  try {
    const { status } = await fixture.call({ callId, argumentsJson });
    if (status !== CallStatus.OK && status !== CallStatus.REFUSED)
      return `Unexpected status ${status}.`;
    became = status === CallStatus.OK ? 'accepted' : 'refused';
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'invalid_argument') return String(error);
    became = 'refused';
  }
  const isJudged = text === argumentsJson && (expected === 'accepted' || expected === 'refused');
  return isJudged && became !== expected ? `It was ${became}: ${text.slice(0, 200)}` : undefined;
}
