import { backoffMs, codeWaitSignal } from '@writ/kernel';
import { pauseTimersWhileParked } from '../../store/timers.ts';
import type { RunScope } from '../scope.ts';
import type { CodeMismatched } from '../unwinding.ts';
import { releasedColumns } from './released-columns.ts';

/** The lease outcome of an agent that waits for a worker with matching code. */
export const CODE_WAIT = 'code_mismatch';

/** First retry delay of an agent that waits for a worker with matching code, as a multiple of `parkMs`. */
const CODE_PARKS = 5;
/** Maximum factor by which this delay grows: by default from 10 seconds to 43 minutes. */
const MAX_CODE_FACTOR = 256;
/**
 * Jitter factor 1: no jitter. Equal delays cause no burst, because a worker does not claim more agents than it may run.
 */
export const NO_JITTER = 1;
/** Value of `failed_length` that marks `failures` as a count of waits for matching code. */
const NO_PROGRESS_NEEDED = -1;

/** Retry settings of agents that wait for a worker with matching code. Times are in milliseconds. */
export interface CodeWaitSettings {
  /**
   * Retry delay of a parked agent, and of a refused outcome report; an agent that waits for matching code is retried
   * after a multiple of this delay.
   */
  readonly parkMs: number;
  /** Returns the time at which an agent is retried after a delay. */
  readonly retryAt: (delayMs: number) => Date;
}

/**
 * Parks an agent until a worker has the code with which the agent started, so that mismatched code does not end the run
 * (BD-6). As after a crash, the uncommitted changes of the mismatched code are discarded; the services keep the
 * recorded outcomes of its calls. A worker retries such agents when it starts.
 */
export async function waitForCode(
  scope: RunScope,
  { wait }: CodeMismatched,
  { parkMs, retryAt }: CodeWaitSettings,
): Promise<typeof CODE_WAIT> {
  const { session } = scope;
  const { failed_length: failedLength, failures } = session.row;
  const waits = failedLength === NO_PROGRESS_NEEDED ? failures : 0;
  const baseMs = parkMs * CODE_PARKS;
  const delayMs = backoffMs(waits + 1, { baseMs, maxMs: baseMs * MAX_CODE_FACTOR }, NO_JITTER);
  const parked = {
    type: 'parked',
    until: retryAt(delayMs),
    waitingFor: codeWaitSignal(wait),
  } as const;
  await session.write(
    { ...releasedColumns(scope, parked), failures: waits + 1, failed_length: NO_PROGRESS_NEEDED },
    (trx, at) => pauseTimersWhileParked(trx, session.lease, { from: 'RUNNING', to: 'PARKED' }, at),
  );
  scope.progress.publishState('PARKED');
  return CODE_WAIT;
}
