import type { WritError } from '@writ/kernel';
import type { CallFailure } from '../../domain/chat/failure.ts';
import { isNearBudget } from '../../domain/ledger/balance.ts';
import type { CallEnd } from './call-chunk.ts';
import type { CallLog } from './call-log.ts';
import type { EndedCall } from './call-outcomes.ts';

/** Tells that a call has its answer: the one `finished` chunk (EM-9). */
export function reportAnswer(log: CallLog, ended: EndedCall, replayed = false): void {
  log.append({ type: 'finished', ...endOf(ended, undefined, replayed) });
}

/**
 * Tells that a call has no answer: the one `finished` chunk, and then the error (EM-9).
 * @throws `error`
 */
export function reportFailure(
  log: CallLog,
  ended: EndedCall,
  failure: CallFailure,
  error: WritError,
  replayed = false,
): never {
  log.append({ type: 'finished', ...endOf(ended, failure, replayed) });
  throw error;
}

/**
 * Tells that a call was interrupted before it had an outcome; a repeat makes another attempt.
 * @throws `error`
 */
export function reportInterruption(log: CallLog, ended: EndedCall, error: WritError): never {
  const { reason, message } = error;
  return reportFailure(log, ended, { stopReason: 'cancelled', reason, message }, error);
}

function endOf(
  { tab, call, levels }: EndedCall,
  failure: CallFailure | undefined,
  replayed: boolean,
): CallEnd {
  return {
    answer: call.answer,
    failure,
    usage: call.usage,
    cost: call.cost,
    estimated: call.estimated,
    attempts: call.attempts,
    replayed,
    nearBudget: levels.some((balance) => isNearBudget(balance, tab.near)),
    runCost: levels.find(({ level }) => level === 'run')?.used.cost ?? 0n,
    warnings: call.warnings,
    fittedOutput: call.fittedOutput,
  };
}
