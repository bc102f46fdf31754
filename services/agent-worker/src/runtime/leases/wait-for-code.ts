import { backoffMs, codeWaitSignal } from '@writ/kernel';
import { pauseTimersWhileParked } from '../../store/timers.ts';
import type { RunScope } from '../scope.ts';
import type { CodeMismatched } from '../unwinding.ts';
import { releasedColumns } from './released-columns.ts';

/** The outcome of a lease whose agent waits for other code. */
export const CODE_WAIT = 'code_mismatch';

/** First delay of an agent that waits for other code, as a multiple of `parkMs`. */
const CODE_PARKS = 5;
/** Maximum factor by which this delay grows: by default from 10 seconds to 43 minutes. */
const MAX_CODE_FACTOR = 256;
/** Equal delays cause no burst: a worker claims no more agents than it may run. */
export const NO_JITTER = 1;
/** Value of `failed_length` with which `failures` counts such waits. */
const NO_PROGRESS_NEEDED = -1;

/** When an agent that waits for other code is retried. Times are in milliseconds. */
export interface CodeWaitSettings {
  /** Delay after which a parked agent retries, and one whose report was refused; one that waits for code waits a multiple. */
  readonly parkMs: number;
  /** Returns the time at which an agent is retried after a delay. */
  readonly retryAt: (delayMs: number) => Date;
}

/**
 * Parks an agent until a worker has the code with which it started, so that other code does not end
 * the run (BD-6). What it did under the wrong code since the last commit is discarded, as
 * after a crash; services have recorded its calls. A worker retries such agents when it starts.
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
