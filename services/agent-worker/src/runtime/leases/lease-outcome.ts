import { backoffMs, isStopReason, isWritError, RetryPolicy } from '@writ/kernel';
import { onAgentEnded } from '../../app/agents/on-agent-ended.ts';
import type { AgentEvent } from '../../domain/agent/state.ts';
import type { AgentChanges } from '../../store/agents.ts';
import { keyOf } from '../../store/keys.ts';
import { deleteLimits } from '../../store/rate-limits.ts';
import { pauseTimersWhileParked } from '../../store/timers.ts';
import type { RuntimeContext } from '../context.ts';
import type { CommitExtras } from '../journal/commits.ts';
import type { RunScope } from '../scope.ts';
import {
  AlreadyEnded,
  CodeMismatched,
  Drained,
  LeaseLost,
  Parked,
  PeerRefusal,
  Preempted,
  SignalArrived,
  type Stop,
  Stopped,
  Suspended,
} from '../unwinding.ts';
import { reportableStop, reportOutcome } from './outcome-report.ts';
import { endPartially, NO_PARTIAL, repeatPartialFinal } from './partial-final.ts';
import { NO_LEASE, releasedColumns } from './released-columns.ts';
import { type CodeWaitSettings, NO_JITTER, waitForCode } from './wait-for-code.ts';

/** Settings that determine when an agent that cannot continue now is retried. Times are in milliseconds. */
export interface EndingSettings extends CodeWaitSettings {
  /** Delay before the first restart of a failed agent; doubles with each restart. */
  readonly restartMs: number;
}

/** The result of a lease for logs and spans: a stop reason, or why the agent has not ended. */
export type LeaseOutcome = string;

/**
 * Prefix of the lease outcome when the supervisor refused the outcome report; the stop reason of the refusal follows
 * the prefix.
 */
export const REPORT_REFUSED = 'report_refused';

/**
 * Ends an agent whose function returned: with its approved final answer, or with an error when there is none.
 * @throws Unwinding when the agent cannot be ended now; errors of the store
 */
export async function endReturned(
  scope: RunScope,
  context: Pick<RuntimeContext, 'hasEnded' | 'unwinding'>,
  settings: EndingSettings,
): Promise<LeaseOutcome> {
  // The agent may have caught the unwinding.
  if (context.unwinding !== undefined) throw context.unwinding;
  scope.journal.assertComplete();
  if (context.hasEnded) return await end(scope, 'success');
  const stop: Stop = {
    stopReason: 'error:no_outcome',
    phase: 'worker',
    detail: 'The agent returned without a final answer or stop reason.',
  };
  return await report(scope, stop, settings);
}

/**
 * Handles an error thrown by the agent's function.
 * @throws Unwinding when the agent cannot be ended now; errors of the store
 */
export async function endThrown(
  scope: RunScope,
  thrown: unknown,
  settings: EndingSettings,
): Promise<LeaseOutcome> {
  if (thrown instanceof Suspended) return 'suspended';
  if (thrown instanceof LeaseLost) return 'lease_lost';
  if (thrown instanceof Parked) return await park(scope, settings);
  if (thrown instanceof CodeMismatched) return await waitForCode(scope, thrown, settings);
  if (thrown instanceof Preempted) {
    const partial = thrown.isPaused ? await endPartially(scope) : NO_PARTIAL;
    if (partial.ended) return await end(scope, 'paused');
    await commitInactive(scope, { type: 'preempted', approval: partial.approval });
    return 'preempted';
  }
  if (thrown instanceof Drained) {
    await scope.commits.commit({ changes: NO_LEASE });
    return 'drained';
  }
  if (thrown instanceof SignalArrived) {
    await scope.commits.commit({ changes: NO_LEASE });
    return 'awake';
  }
  if (thrown instanceof AlreadyEnded) return await endAlreadyEnded(scope, thrown, settings);
  if (thrown instanceof Stopped) return await report(scope, thrown.stop, settings);
  return await restart(scope, thrown, settings);
}

/**
 * Reports the agent's outcome to the supervisor, which returns the recorded stop reason (AG-7). The agent ends only
 * after the supervisor has recorded its end. If the supervisor refuses the report, the agent is suspended and the
 * report is retried later (BD-3).
 */
async function report(
  scope: RunScope,
  stopped: Stop,
  settings: EndingSettings,
): Promise<LeaseOutcome> {
  const { steps, commits, session } = scope;
  const stop = reportableStop(stopped);
  steps.close(stop.stopReason);
  await commits.commit();
  try {
    const recorded = await reportOutcome(scope, stop);
    session.answer ??= recorded.answer;
    return await endAs(scope, recorded.stopReason, settings);
  } catch (error) {
    if (error instanceof PeerRefusal) return await retryReport(scope, stop, error, settings);
    if (error instanceof AlreadyEnded) {
      return await endAs(scope, error.stopReason ?? stop.stopReason, settings);
    }
    throw error;
  }
}

/**
 * Suspends the agent until its next lease, which retries the report. Ends the agent if the supervisor has no such
 * agent.
 */
async function retryReport(
  scope: RunScope,
  stop: Stop,
  { cause, stopReason }: PeerRefusal,
  { parkMs, retryAt }: EndingSettings,
): Promise<LeaseOutcome> {
  if (isWritError(cause) && cause.kind === 'not_found') return await end(scope, stop.stopReason);
  await suspendUntil(scope, retryAt(parkMs));
  return `${REPORT_REFUSED}:${stopReason}`;
}

async function endAlreadyEnded(
  scope: RunScope,
  { stopReason }: AlreadyEnded,
  settings: EndingSettings,
): Promise<LeaseOutcome> {
  if (scope.session.isCancelled) {
    scope.progress.publishState('CANCELLED');
    return 'cancelled';
  }
  // The worker may have crashed after the review approved the partial final answer, which ended the agent.
  if ((await repeatPartialFinal(scope)).ended) return await end(scope, 'paused');
  // A child must reply with its approved answer. If another process proposed the answer, only the supervisor has it.
  const isAnswered = stopReason === 'success' && !isRoot(scope);
  if (stopReason !== undefined && !isAnswered) return await endAs(scope, stopReason, settings);
  return await report(scope, { stopReason: 'error:run_ended', phase: 'supervisor' }, settings);
}

/**
 * Ends an agent whose end the supervisor has already recorded. For the stop reason `success`, another process proposed
 * the approved answer, and this process lacks the last events. A root agent is therefore suspended until the supervisor
 * ends it with Cancel, which contains the events that the supervisor has received only in requests (HK-1). A child ends
 * at once, because its parent waits for it.
 */
async function endAs(
  scope: RunScope,
  recorded: string,
  { parkMs, retryAt }: EndingSettings,
): Promise<LeaseOutcome> {
  if (recorded !== 'success' || !isRoot(scope)) return await end(scope, recorded);
  await suspendUntil(scope, retryAt(parkMs));
  return 'ended_by_peer';
}

function isRoot({ session }: RunScope): boolean {
  return session.row.reply_to === null;
}

async function end(scope: RunScope, recorded: string): Promise<LeaseOutcome> {
  const { session, commits, steps, history } = scope;
  const stopReason = isStopReason(recorded) ? recorded : 'error:unknown_stop_reason';
  steps.close(stopReason);
  const isKeptByProvider = session.manifest.history !== undefined;
  if (stopReason === 'success' && isKeptByProvider) await history.saveAtProvider();
  let hasWoken = false;
  await commits.commit({
    changes: releasedColumns(scope, { type: 'ended', stopReason }),
    also: async (trx, at) => {
      // After an ordinary end of a run, the supervisor sends no Cancel that would delete the limits.
      if (isRoot(scope)) await deleteLimits(trx, keyOf(session.row));
      hasWoken = await onAgentEnded(trx, session.row, { stopReason, answer: session.answer }, at);
      if (stopReason === 'success') await history.save(trx, at);
    },
    touched: touchedByEnd(session),
  });
  session.note({ type: 'ended', stopReason });
  if (hasWoken) scope.onRunnable();
  return stopReason;
}

/**
 * Returns the transaction options for rows outside the run: an answer may wake agents of other runs, and whether a
 * durable subscription is kept depends on subscriptions of other runs.
 */
function touchedByEnd({
  row,
  manifest,
}: RunScope['session']): NonNullable<CommitExtras['touched']> {
  const { tenant } = row;
  return manifest.outputTopic === '' ? { resource: `follows:${tenant}` } : { tenant };
}

async function park(scope: RunScope, { parkMs, retryAt }: EndingSettings): Promise<LeaseOutcome> {
  await commitInactive(scope, { type: 'parked', until: retryAt(parkMs) });
  return 'parked';
}

/**
 * Restarts an agent after an unexpected error, a limited number of times. An agent that progressed
 * since its latest failure starts with a new count (SUP-7).
 */
async function restart(
  scope: RunScope,
  thrown: unknown,
  settings: EndingSettings,
): Promise<LeaseOutcome> {
  await scope.commits.discardFailed();
  const { row, manifest } = scope.session;
  const { instance } = scope.session.lease;
  const length = scope.journal.length;
  const policy = new RetryPolicy(manifest.limits.maxRetries, { [instance]: row.failures });
  if (length > row.failed_length) policy.reset(instance);
  const failures = policy.counts()[instance] ?? 0;
  const what = isWritError(thrown) ? thrown.reason.toLowerCase() : 'agent_failed';
  if (!policy.shouldRetry(instance)) {
    const detail = isWritError(thrown) ? thrown.message : `The agent failed: ${nameOf(thrown)}.`;
    return await report(scope, { stopReason: `error:${what}`, phase: 'worker', detail }, settings);
  }
  const limits = { baseMs: settings.restartMs, maxMs: Number.POSITIVE_INFINITY };
  const delayMs = backoffMs(failures + 1, limits, NO_JITTER);
  const changes = { failures: failures + 1, failed_length: length };
  await suspendUntil(scope, settings.retryAt(delayMs), changes);
  return `restart:${what}`;
}

/** Suspends the agent until `wakeAt`. */
async function suspendUntil(
  scope: RunScope,
  wakeAt: Date,
  changes: AgentChanges = {},
): Promise<void> {
  const suspended = releasedColumns(scope, { type: 'suspended', waitingFor: [], wakeAt });
  await scope.commits.commit({ changes: { ...suspended, ...changes } });
}

async function commitInactive(
  scope: RunScope,
  event: Extract<AgentEvent, { type: 'preempted' | 'parked' }>,
): Promise<void> {
  const { lease } = scope.session;
  await scope.commits.commit({
    changes: releasedColumns(scope, event),
    also: (trx, at) => pauseTimersWhileParked(trx, lease, { from: 'RUNNING', to: 'PARKED' }, at),
  });
}

function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : typeof thrown;
}
