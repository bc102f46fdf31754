import { PreconditionError, UnauthenticatedError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { actFor } from './act-for-agent.ts';

const AGENT = { tenant: 'acme', runId: 'run-1', instance: 'a-1' };

/** Calls a service that rejects the first calls with `errors`; returns the token of each call. */
async function called(...errors: readonly Error[]): Promise<string[]> {
  const seen: string[] = [];
  let renewed = 0;
  const tokenOf = (number: number) => `token-${number}`;
  const tokens = {
    of: async (_: unknown, isRefused = false) => {
      if (isRefused) renewed += 1;
      const supervisor = tokenOf(renewed);
      return { supervisor, executionMeter: '', toolGateway: '', spawnBudget: '', expiresAt: 0 };
    },
  };
  const slots = { grant: async () => 'grant', forget: () => undefined };
  await actFor({ slots, tokens }, AGENT, 'supervisor', async ({ agentToken = '' }) => {
    const error = errors[seen.length];
    seen.push(agentToken);
    if (error !== undefined) throw error;
  });
  return seen;
}

const invalid = (check: string) =>
  new UnauthenticatedError('TOKEN_INVALID', 'Not valid.', { token: 'agent', check });

describe('a call for an agent', () => {
  it('is retried once with a new token when the service rejects the token', async () => {
    expect(await called(invalid('signature'))).toEqual(['token-0', 'token-1']);
    await expect(called(invalid('signature'), invalid('signature'))).rejects.toThrow('Not valid.');
  });

  it('is retried, up to ten attempts, while the service does not know the key of the token yet (SV-6)', async () => {
    const unknown = invalid('kid');
    expect(await called(unknown, unknown, unknown)).toHaveLength(4);
    await expect(called(...Array<Error>(10).fill(unknown))).rejects.toThrow('Not valid.');
  });

  it('is not retried after an error that does not concern the token', async () => {
    const ended = new PreconditionError('RUN_ENDED', 'Ended.');
    await expect(called(ended)).rejects.toThrow('Ended.');
  });
});
