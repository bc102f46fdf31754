import { type AgentRef, canonicalDigest } from '@writ/kernel';
import { type Reply, replySignal } from '../../domain/agent/message.ts';
import type { Operation } from '../../domain/journal/entry.ts';
import { deleteTimer, insertTimer } from '../../store/timers.ts';
import type { NumberedCall } from '../journal/journal.ts';
import type { RunScope } from '../scope.ts';
import { awaitSignal } from '../signals.ts';
import { PeerRefusal } from '../unwinding.ts';

/** Effect indexes of an ask operation. */
const PART = { ask: 0, reply: 1, end: 2 } as const;

/**
 * Suspends the agent until the child replies or the timeout expires, and then ends the child unconditionally, so that
 * its slot is released (AG-3). The timeout is paused while the child is parked (SB-4).
 */
export async function ask(scope: RunScope, child: AgentRef, timeoutMs: number): Promise<Reply> {
  const call = scope.cursor.next();
  startTimer(scope, call, child, timeoutMs);
  const { branch, position } = call;
  const place = { branch, position, part: PART.reply };
  const { payload } = await awaitSignal(scope, replySignal(child.instance), place);
  const reply = JSON.parse(payload) as Reply;
  await endChild(scope, call, child, reply.kind);
  return reply;
}

/** Starts the timer in the commit that suspends the agent. */
function startTimer(
  { journal, commits, session }: RunScope,
  { branch, position, callId }: NumberedCall,
  { instance }: AgentRef,
  timeoutMs: number,
): void {
  const argsDigest = canonicalDigest({ instance, timeoutMs });
  const operation: Operation = { branch, position, part: PART.ask, kind: 'ask', argsDigest };
  if (journal.recall(operation) !== undefined) return;
  const dueAt = new Date(session.meta.clock.now().getTime() + timeoutMs);
  journal.record({ ...operation, value: null }, false);
  const timedOut: Reply = { kind: 'timed_out' };
  const timer = {
    ...session.lease,
    timerId: callId,
    name: replySignal(instance),
    payload: JSON.stringify(timedOut),
    dueAt,
    waitsWith: instance,
  };
  commits.add((trx, at) => insertTimer(trx, timer, at));
}

async function endChild(
  { session, journal, commits, calls, peers }: RunScope,
  { branch, position, callId }: NumberedCall,
  { instance }: AgentRef,
  outcome: Reply['kind'],
): Promise<void> {
  const argsDigest = canonicalDigest({ instance, outcome });
  const operation: Operation = { branch, position, part: PART.end, kind: 'end', argsDigest };
  if (journal.recall(operation) !== undefined) return;
  session.check();
  commits.add(async (trx) => {
    await deleteTimer(trx, session.lease, callId);
  });
  await commits.beforeEffect();
  let value: string;
  try {
    value = await calls.call({ audience: 'supervisor' }, (options) =>
      peers.supervisor.endChild({ callId, childInstance: instance, outcome }, options),
    );
  } catch (error) {
    // If the supervisor refuses the request, it ends the child later, together with the parent.
    if (!(error instanceof PeerRefusal)) throw error;
    value = error.stopReason;
  }
  journal.record({ ...operation, value }, false);
}
