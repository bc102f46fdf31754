import { DataLossError } from '@writ/kernel';

/** The operations of an agent that leave an entry (RT-1). */
export type OperationKind =
  | 'llm'
  | 'review'
  | 'signal'
  | 'tool'
  | 'tools'
  | 'log'
  | 'now'
  | 'random';

/** One effect as an agent asks for it, which is what must not change when it runs again. */
export interface Operation {
  /** Number of the operation within the agent, from 0. */
  readonly position: number;
  /** Part of an operation that takes several effects: a proposal is review, wait and execution. */
  readonly part: number;
  readonly kind: OperationKind;
  /** SHA-256 of the arguments, in hex. */
  readonly argsDigest: string;
}

/** One effect and what it came to. */
export interface JournalEntry extends Operation {
  /** Plain JSON. */
  readonly value: unknown;
}

/** The id under which services know an operation: the same whenever the agent runs again (RT-1). */
export function callIdOf(position: number): string {
  return `op-${position}`;
}

/**
 * Compares what an agent asks for now with what the journal has at the same place.
 * @throws DataLossError JOURNAL_DIVERGENCE naming the place and both sides (RT-1)
 */
export function assertSameOperation(recorded: Operation, asked: Operation, agent: string): void {
  const sameKind = recorded.kind === asked.kind;
  if (sameKind && recorded.argsDigest === asked.argsDigest) return;
  throw divergence(
    agent,
    recorded,
    sameKind
      ? `asked for ${asked.kind} with other arguments (${short(recorded)} then, ${short(asked)} now)`
      : `asked for ${asked.kind} (${short(asked)}) now`,
  );
}

/**
 * Checks that an agent that came to its end has asked for everything that the journal has.
 * @throws DataLossError JOURNAL_DIVERGENCE naming the first entry that was not asked for
 */
export function assertAllAsked(
  entries: Iterable<Operation>,
  operations: number,
  agent: string,
): void {
  for (const entry of entries) {
    if (entry.position >= operations) throw divergence(agent, entry, 'it came to its end before');
  }
}

function divergence(agent: string, recorded: Operation, now: string): DataLossError {
  return new DataLossError(
    'JOURNAL_DIVERGENCE',
    `${agent} diverges from its journal at index ${recorded.position}: it recorded ${recorded.kind} (${short(recorded)}), but ${now}.`,
    { position: String(recorded.position), recorded: recorded.kind, agent },
  );
}

function short({ argsDigest }: Operation): string {
  return argsDigest.slice(0, 12);
}
