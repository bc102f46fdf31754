import { derivedId } from '@writ/kernel';
import type { RunScope } from '../scope.ts';
import { PeerRefusal } from '../unwinding.ts';

/** A proposed partial final, as stored with the agent. */
interface PartialFinal {
  readonly callId: string;
  readonly answer: string;
}

/** The outcome of a partial final. */
export interface PartialOutcome {
  /** Whether it ended the agent; otherwise the agent is parked. */
  readonly ended: boolean;
  /** The signal of the approval that it waits for. */
  readonly approval?: string;
}

/** The agent has no partial final, or the review rejected it. */
export const NO_PARTIAL: PartialOutcome = Object.freeze({ ended: false });

/**
 * Ends a paused agent with what it has so far, if its manifest says so: the answer is reviewed like
 * every final, without a slot grant (SB-4, SV-1).
 */
export async function endPartially(scope: RunScope): Promise<PartialOutcome> {
  const { session, journal, commits } = scope;
  if (session.manifest.onPreempt !== 'partial') return NO_PARTIAL;
  const { runId, instance } = session.lease;
  const callId = derivedId('part', runId, instance, String(journal.length));
  const stored = storedFinal(scope);
  // The text of a call_id must not change, even if a crash interrupted the replay earlier.
  if (stored?.callId === callId) return await propose(scope, stored);
  const answer = session.draft?.().trim() ?? '';
  if (answer === '' || journal.isReplaying) return NO_PARTIAL;
  const final: PartialFinal = { callId, answer };
  await commits.commit({ changes: { partial_final: JSON.stringify(final) } });
  return await propose(scope, final);
}

/** Repeats the latest partial final of an agent that has ended, to get its recorded decision. */
export async function repeatPartialFinal(scope: RunScope): Promise<PartialOutcome> {
  const stored = storedFinal(scope);
  return stored === undefined ? NO_PARTIAL : await propose(scope, stored);
}

function storedFinal({ session }: RunScope): PartialFinal | undefined {
  const { partial_final: stored } = session.row;
  return stored === null ? undefined : (JSON.parse(stored) as PartialFinal);
}

async function propose(
  { session, calls, carried, peers }: RunScope,
  { callId, answer }: PartialFinal,
): Promise<PartialOutcome> {
  const action = { kind: 'final', answer } as const;
  // Composed, so that it counts no step: an agent whose steps are used up has a result, too.
  const call = { callId, action, composed: true, partial: true, ...carried.peek() };
  try {
    const decision = await calls.call({ audience: 'supervisor', afterDeadline: true }, (options) =>
      peers.supervisor.reviewAction(call, options),
    );
    if (!decision.settled) return { ended: false, approval: `approval:${callId}` };
    const { executedAction: final, runEnded } = decision;
    if (!runEnded || final?.kind !== 'final') return NO_PARTIAL;
    session.answer = final.answer;
    return { ended: true };
  } catch (error) {
    if (error instanceof PeerRefusal) return NO_PARTIAL;
    throw error;
  }
}
