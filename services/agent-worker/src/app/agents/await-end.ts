import { setTimeout as sleep } from 'node:timers/promises';
import { type AgentKey, isTerminal } from '@writ/kernel';
import { type CarriedEvent, readEvents } from '../../domain/agent/carried-event.ts';
import { findAgent, statusOf } from '../../store/agents.ts';
import type { Dependencies } from './dependencies.ts';

/** Longest wait for the commit with which an agent ends, ms. */
const LIMIT_MS = 2_000;
/** Interval of reading an agent that another replica runs, ms. */
const POLL_MS = 20;

/**
 * Waits until an agent whose final answer is approved has ended by itself, so that the session has its history, and
 * returns its events that no request to the supervisor has carried. Undefined when it has not ended within the limit,
 * when no worker runs it, and when it does not exist: it must be cancelled then (AG-7).
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
