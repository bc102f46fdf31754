import { eventMac } from '@writ/identity';
import type { WritError } from '@writ/kernel';
import type { CallEnd, CarriedEvent } from '../../domain/chat/call-chunk.ts';
import type { CallFailure } from '../../domain/chat/failure.ts';
import { isNearBudget } from '../../domain/ledger/near-budget.ts';
import type { EndedCall } from './call-record.ts';
import type { ChunkBuffer } from './chunk-buffer.ts';

/** Appends the `finished` chunk of an answered call (EM-9). */
export function reportAnswer(chunks: ChunkBuffer, ended: EndedCall, replayed = false): void {
  chunks.append({ type: 'finished', ...endOf(ended, undefined, replayed) });
}

/** A failure that `finished` reports, with the error that ends the call. */
export interface ReportedFailure {
  readonly failure: CallFailure;
  readonly error: WritError;
  readonly replayed?: boolean;
}

/**
 * Appends the `finished` chunk of a failed call and throws its error (EM-9).
 * @throws `error`
 */
export function reportFailure(
  chunks: ChunkBuffer,
  ended: EndedCall,
  { failure, error, replayed = false }: ReportedFailure,
): never {
  chunks.append({ type: 'finished', ...endOf(ended, failure, replayed) });
  throw error;
}

/**
 * Appends the `finished` chunk of an interrupted call; a repeat makes another attempt.
 * @throws `error`
 */
export function reportInterruption(chunks: ChunkBuffer, ended: EndedCall, error: WritError): never {
  const { reason, message } = error;
  const failure = { stopReason: 'cancelled', reason, message };
  return reportFailure(chunks, ended, { failure, error });
}

function endOf(ended: EndedCall, failure: CallFailure | undefined, replayed: boolean): CallEnd {
  const { tab, call, levels } = ended;
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
    events: carriedEvents(ended),
  };
}

/** Returns the events of a call for the supervisor; an empty list if the run has no event key. */
function carriedEvents({ tab, call }: EndedCall): CarriedEvent[] {
  const key = Buffer.from(tab.eventKey, 'hex');
  if (key.length === 0) return [];
  return call.events.map((encoded) => {
    const event = new Uint8Array(Buffer.from(encoded, 'base64'));
    return { event, mac: eventMac(key, event) };
  });
}
