import { setTimeout as sleep } from 'node:timers/promises';
import { type AgentKey, isTerminal } from '@writ/kernel';
import { type CarriedEvent, readEvents } from '../../domain/agent/carried-event.ts';
import { findAgent, statusOf } from '../../store/agents.ts';
import type { Dependencies } from './dependencies.ts';

/** Maximum wait for the commit that records the end of an agent, ms. */
const LIMIT_MS = 2_000;
/** Interval at which the row of an agent that another replica runs is polled, ms. */
const POLL_MS = 20;

/**
 * Waits until an agent whose final answer is approved has ended without a cancellation, so that the session contains
 * its history. Returns the events of the agent that have not been sent to the supervisor. Returns undefined when the
 * agent has not ended within the limit, is not run by any worker, or does not exist; the caller must then cancel it
 * (AG-7).
 */
export async function awaitEnd(
  { store, clock, agents }: Pick<Dependencies, 'store' | 'clock' | 'agents'>,
  key: AgentKey,
): Promise<readonly CarriedEvent[] | undefined> {
  const limit = performance.now() + LIMIT_MS;
  await agents.untilReleased(key, LIMIT_MS);
  for (;;) {
    const agent = await findAgent(store.db, key);
    if (agent === undefined) return undefined;
    if (isTerminal(statusOf(agent).state)) return readEvents(agent.unreported_events);
    const { lease_expires_at: expiresAt } = agent;
    const isRunning = expiresAt !== null && expiresAt > clock.now();
    if (!isRunning || performance.now() > limit) return undefined;
    await sleep(POLL_MS);
  }
}
