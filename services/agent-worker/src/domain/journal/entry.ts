import { DataLossError, derivedId } from '@writ/kernel';

/** The operations of an agent that leave an entry (RT-1). */
export type OperationKind =
  | 'all'
  | 'ask'
  | 'emit'
  | 'end'
  | 'flow'
  | 'follow'
  | 'llm'
  | 'review'
  | 'signal'
  | 'sleep'
  | 'spawn'
  | 'tool'
  | 'tools'
  | 'recall'
  | 'trip'
  | 'log'
  | 'now'
  | 'random';

/** Where an effect stands in an agent, the same whenever the agent runs again. */
export interface Place {
  /**
   * Which of the branches that run side by side: empty for the agent itself, `3.1` for the second
   * branch of its operation 3, and so on further down.
   */
  readonly branch: string;
  /** Number of the operation within its branch, from 0. */
  readonly position: number;
  /** Part of an operation that takes several effects: a proposal is review, wait and execution. */
  readonly part: number;
}

/** One effect as an agent asks for it, which is what must not change when it runs again. */
export interface Operation extends Place {
  readonly kind: OperationKind;
  /** SHA-256 of the arguments, in hex. */
  readonly argsDigest: string;
}

/** One effect and what it came to. */
export interface JournalEntry extends Operation {
  /** Plain JSON. */
  readonly value: unknown;
}

/** Longest id that services take. */
const MAX_ID_LENGTH = 64;

/** The id under which services know an operation: the same whenever the agent runs again (RT-1). */
export function callIdOf({ branch, position }: Pick<Place, 'branch' | 'position'>): string {
  const path = branch === '' ? '' : `${branch.replaceAll('.', '-')}-`;
  const id = `op-${path}${position}`;
  return id.length <= MAX_ID_LENGTH ? id : derivedId('op', branch, String(position));
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
 * @param asked how many operations a branch has asked for
 * @throws DataLossError JOURNAL_DIVERGENCE naming the first entry that was not asked for
 */
export function assertAllReplayed(
  entries: Iterable<Operation>,
  asked: (branch: string) => number,
  agent: string,
): void {
  for (const entry of entries) {
    if (entry.position < asked(entry.branch)) continue;
    throw divergence(agent, entry, 'it came to its end before');
  }
}

/**
 * Checks that an agent with a checkpoint goes there at the place where it did before, and does nothing
 * else instead.
 * @param asked operations that it has asked for when it goes there
 * @param instead what it asks for in place of that
 * @throws DataLossError JOURNAL_DIVERGENCE naming the place and both sides
 */
export function assertSamePrologue(
  prologue: number,
  asked: number,
  agent: string,
  instead?: Operation,
): void {
  if (instead === undefined ? asked === prologue : asked < prologue) return;
  const now = instead === undefined ? `did so at index ${asked}` : `asked for ${instead.kind}`;
  throw new DataLossError(
    'JOURNAL_DIVERGENCE',
    `${agent} diverges from its journal at index ${prologue}: it went on from its checkpoint there, but ${now} now.`,
    { position: String(prologue), recorded: 'checkpoint', agent },
  );
}

function divergence(agent: string, recorded: Operation, now: string): DataLossError {
  return new DataLossError(
    'JOURNAL_DIVERGENCE',
    `${agent} diverges from its journal at index ${indexOf(recorded)}: it recorded ${recorded.kind} (${short(recorded)}), but ${now}.`,
    { position: indexOf(recorded), recorded: recorded.kind, agent },
  );
}

function indexOf({ branch, position }: Place): string {
  return branch === '' ? String(position) : `${branch}.${position}`;
}

function short({ argsDigest }: Operation): string {
  return argsDigest.slice(0, 12);
}
