import { canonicalDigest } from '@writ/kernel';
import { reduceAgent } from '../domain/agent/state.ts';
import { continueWaits, TIMER, waitsText } from '../domain/agent/waits.ts';
import type { Operation, Place } from '../domain/journal/entry.ts';
import { statusColumns } from '../store/agents.ts';
import { pendingSignals, type SignalRow } from '../store/signals.ts';
import { insertTimer } from '../store/timers.ts';
import type { WorkerReader } from '../store/worker-store.ts';
import type { RunScope } from './scope.ts';
import { BranchSuspended, Suspended } from './unwinding.ts';

/** A journaled signal. */
export interface SignalValue {
  /** JSON object. */
  readonly payload: string;
  /** JSON of a decision; null when the signal has no decision. */
  readonly decision: string | null;
}

/**
 * Returns the next signal with the given name. While no such signal exists, the agent is suspended; the check for the
 * signal and the suspension are one transaction, so that no signal is lost (RT-3).
 * @throws Suspended when there is no signal; in a branch, BranchSuspended
 */
export async function awaitSignal(
  scope: RunScope,
  name: string,
  place: Place,
): Promise<SignalValue> {
  const { session, journal, commits, store } = scope;
  const operation: Operation = { ...place, kind: 'signal', argsDigest: canonicalDigest({ name }) };
  const recorded = journal.recall(operation);
  if (recorded !== undefined) return recorded.value as SignalValue;
  session.check();
  let signal: SignalRow;
  do {
    signal = (await firstUnconsumed(scope, store.db, name)) ?? (await wait(scope, name));
    // A concurrent branch may have consumed the signal.
  } while (commits.isUsed(signal.position));
  const value: SignalValue = { payload: signal.payload, decision: signal.decision };
  journal.record({ ...operation, value }, true);
  commits.used(signal.position);
  recordWait(scope, signal);
  return value;
}

/** Records the wait for a signal, if the agent was suspended for it, as a span of the run (SYS-1). */
function recordWait({ session, commits, events }: RunScope, signal: SignalRow): void {
  const { name, received_at: at, sender } = signal;
  const since = session.waits.get(name);
  session.waits.delete(name);
  if (since === undefined) return;
  const { row: agent } = session;
  commits.add(async (trx) => events.waitEnded(trx, { agent, name, since, at, sender }));
}

async function wait(scope: RunScope, name: string): Promise<SignalRow> {
  if (scope.cursor.branch !== '') throw new BranchSuspended([name]);
  return await suspendUntil(scope, [name]);
}

/**
 * Suspends the agent until a signal of one of these names arrives.
 * @returns a signal that arrived during the commit, which was rolled back
 * @throws Suspended
 */
export async function suspendUntil(scope: RunScope, names: readonly string[]): Promise<SignalRow> {
  const { session, commits } = scope;
  const suspended = reduceAgent(session.status, { type: 'suspended', waitingFor: names });
  const now = session.meta.clock.now();
  try {
    await commits.commit({
      changes: {
        ...statusColumns(suspended, now),
        waiting_since: waitsText(continueWaits(session.waits, names, now)),
        lease_owner: null,
        lease_expires_at: null,
      },
      also: async (trx) => {
        for (const name of names) {
          const signal = await firstUnconsumed(scope, trx, name);
          if (signal !== undefined) throw new SignalPending(signal);
        }
      },
    });
  } catch (error) {
    if (error instanceof SignalPending) return error.signal;
    throw error;
  }
  throw new Suspended(`The agent waits for ${names.join(', ')}.`);
}

async function firstUnconsumed(
  { session, commits }: RunScope,
  db: WorkerReader,
  name: string,
): Promise<SignalRow | undefined> {
  for (;;) {
    const most = commits.uncommittedSignals + 1;
    const pending = await pendingSignals(db, session.lease, name, most);
    const signal = pending.find(({ position }) => !commits.isUsed(position));
    // Concurrent branches may have consumed all returned signals during the read; then more signals are read.
    if (signal !== undefined || pending.length < most) return signal;
  }
}

/** Rolls back the suspension; the agent's changes stay pending. */
class SignalPending extends Error {
  readonly signal: SignalRow;

  constructor(signal: SignalRow) {
    super('The signal arrived during the suspension.');
    this.signal = signal;
  }
}

/** Suspends the agent for a time; the timer is committed with the suspension (RT-3). */
export async function sleep(scope: RunScope, ms: number): Promise<void> {
  const { session, journal, commits, cursor } = scope;
  const { branch, position, callId } = cursor.next();
  const name = `${TIMER}${callId}`;
  const argsDigest = canonicalDigest({ ms });
  const operation: Operation = { branch, position, part: 0, kind: 'sleep', argsDigest };
  if (journal.recall(operation) === undefined) {
    const dueAt = new Date(session.meta.clock.now().getTime() + ms);
    journal.record({ ...operation, value: null }, false);
    const timer = { ...session.lease, timerId: callId, name, payload: '{}', dueAt };
    commits.add((trx, at) => insertTimer(trx, timer, at));
  }
  await awaitSignal(scope, name, { branch, position, part: 1 });
}
