import { canonicalDigest } from '@writ/kernel';
import type { Operation } from '../domain/journal/entry.ts';
import { insertTimer } from '../store/timers.ts';
import type { RunScope } from './scope.ts';
import { awaitSignal } from './signals.ts';

/** Sleeps for a time, as rows; the end of it is durable with the sleep itself (RT-3). */
export async function sleep(scope: RunScope, ms: number): Promise<void> {
  const { session, journal, commits, lane } = scope;
  const { branch, position, callId } = lane.next();
  const name = `timer:${callId}`;
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
