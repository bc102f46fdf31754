import { derivedId } from '@writ/kernel';
import type { RunScope } from '../scope.ts';
import { PeerRefusal } from '../unwinding.ts';

/** A proposed partial final answer, as stored with the agent. */
interface PartialFinal {
  readonly callId: string;
  readonly answer: string;
}

/** The outcome of a proposed partial final answer. */
export interface PartialOutcome {
  /** Whether the answer was approved and ended the agent; otherwise the agent is parked. */
  readonly ended: boolean;
  /** The approval signal that the parked agent waits for; undefined when no approval is pending. */
  readonly approval?: string;
}

/** The outcome when the agent has no partial final answer, or when the review rejected it. */
export const NO_PARTIAL: PartialOutcome = Object.freeze({ ended: false });

/**
 * Proposes the partial answer of a paused agent as its final answer, if its manifest has `on_preempt: partial`, and
 * returns the outcome. The answer is reviewed like any final answer, but requires no slot grant (SB-4, SV-1).
 */
export async function endPartially(scope: RunScope): Promise<PartialOutcome> {
  const { session, journal, commits } = scope;
  if (session.manifest.onPreempt !== 'partial') return NO_PARTIAL;
  const { runId, instance } = session.lease;
  const callId = derivedId('part', runId, instance, String(journal.length));
  const stored = storedFinal(scope);
  // The answer of a call_id must not change, even if the earlier attempt was interrupted by a crash.
  if (stored?.callId === callId) return await propose(scope, stored);
  const answer = session.draft?.().trim() ?? '';
  if (answer === '' || journal.isReplaying) return NO_PARTIAL;
  const final: PartialFinal = { callId, answer };
  await commits.commit({ changes: { partial_final: JSON.stringify(final) } });
  return await propose(scope, final);
}

/** Proposes the latest partial final answer of an ended agent once more, to get the recorded decision. */
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
  // Marked as composed, so that it does not count as a step: an agent that has used up its steps can still end with a
  // partial answer.
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
