import { canonicalDigest, derivedId } from '@writ/kernel';
import type { SpawnAnswer } from '../../domain/calls/decision.ts';
import { type Decision, phaseOfRefusal, refusalOf } from '../../domain/calls/decision.ts';
import type { Operation } from '../../domain/journal/entry.ts';
import type { SpawnOptions, SpawnOutcome } from '../agent.ts';
import type { NumberedCall } from '../journal/journal.ts';
import { awaitDecision } from '../proposals.ts';
import type { RunScope } from '../scope.ts';
import { PeerRefusal } from '../unwinding.ts';

/** Effect indexes of a delegation. */
const PART = { spawn: 0, approval: 1, spawnAfter: 2 } as const;

/**
 * Requests the review of a delegation and waits for an approval if one is required. For an approved delegation, the
 * supervisor creates the child with a slot, a tab and tokens, and delivers it (SV-1, SUP-9).
 */
export async function spawn(
  scope: RunScope,
  agent: string,
  task: string,
  options: SpawnOptions,
): Promise<SpawnOutcome> {
  const call = scope.cursor.next();
  const { callId } = call;
  const empty = (['tools', 'models'] as const).find((field) => options[field]?.length === 0);
  if (empty !== undefined) {
    // In a request to the supervisor, an empty list means no restriction.
    const message = `${empty} must not be an empty list; omit it to allow all ${empty} of ${agent}.`;
    return { kind: 'failed', callId, stopReason: 'error:invalid_spawn', message };
  }
  const { runId, instance } = scope.session.lease;
  const correlationId = derivedId('ask', runId, instance, callId);
  const delegation = { agent, task, correlationId, ...options };
  const first = await spawnChild(scope, call, PART.spawn, delegation);
  if ('failure' in first) return { kind: 'failed', callId, ...first.failure };
  if (!first.decision.settled) {
    const settled = await awaitDecision(scope, call, PART.approval);
    if (refusalOf(settled) !== undefined) return refused(scope, callId, settled);
    const made = await spawnChild(scope, call, PART.spawnAfter, delegation);
    if ('failure' in made) return { kind: 'failed', callId, ...made.failure };
    return outcomeOf(scope, callId, made);
  }
  return outcomeOf(scope, callId, first);
}

interface Delegation extends SpawnOptions {
  readonly agent: string;
  readonly task: string;
  readonly correlationId: string;
}

/**
 * The journaled response to a spawn: the supervisor's answer, with the digests of the receipts that the request
 * delivered, or its permanent refusal.
 */
type Recorded =
  | (SpawnAnswer & { readonly delivered?: readonly string[] })
  | { readonly failure: { readonly stopReason: string; readonly message: string } };

async function spawnChild(
  { session, journal, commits, calls, carried, peers, steps }: RunScope,
  { branch, position, callId }: NumberedCall,
  part: number,
  delegation: Delegation,
): Promise<Recorded> {
  const operation: Operation = {
    branch,
    position,
    part,
    kind: 'spawn',
    argsDigest: canonicalDigest(delegation),
  };
  const recorded = journal.recall(operation)?.value as Recorded | undefined;
  if (recorded !== undefined) {
    // The supervisor did not store the receipts of a refused request.
    if (!('failure' in recorded)) carried.replayed(recorded.delivered, branch);
    return recorded;
  }
  session.check();
  await commits.beforeEffect();
  const attached = carried.peek();
  let value: Recorded;
  try {
    const answer = await calls.call({ audience: 'supervisor', acts: true }, (options) =>
      peers.supervisor.spawnChild({ callId, ...delegation, ...attached }, options),
    );
    value = { ...answer, delivered: carried.acknowledge(attached) };
    steps.note(answer.decision.verdict);
  } catch (error) {
    // A parent can continue without the child (AG-3).
    if (!(error instanceof PeerRefusal)) throw error;
    value = { failure: { stopReason: error.stopReason, message: error.message } };
  }
  // The supervisor does not record refusals: it may accept the repeated request.
  journal.record({ ...operation, value }, 'failure' in value);
  return value;
}

function outcomeOf(
  scope: RunScope,
  callId: string,
  { decision, child, slotRefusal }: SpawnAnswer,
): SpawnOutcome {
  if (child !== undefined) return { kind: 'spawned', callId, child };
  if (slotRefusal === '') return refused(scope, callId, decision);
  return { kind: 'no_slot', callId, message: slotRefusal };
}

function refused({ steps }: RunScope, callId: string, decision: Decision): SpawnOutcome {
  const stopReason = refusalOf(decision) ?? 'error:no_child';
  steps.note(stopReason);
  const stop = { stopReason, phase: phaseOfRefusal(decision), callId };
  return { kind: 'refused', callId, stop, message: decision.reason };
}
