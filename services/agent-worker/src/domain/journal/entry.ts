import { DataLossError, derivedId } from '@writ/kernel';

/** Kinds of journaled operations (RT-1). */
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
  | 'turn'
  | 'log'
  | 'now'
  | 'random';

/** Position of an effect in an agent's execution, the same in every replay. */
export interface Place {
  /**
   * Path of the concurrent branch: empty for the agent itself, `3.1` for the second branch of its
   * operation 3, and so on.
   */
  readonly branch: string;
  /** Sequence number of the operation within its branch, from 0. */
  readonly position: number;
  /**
   * Index of the effect within an operation that consists of several effects, such as the review, wait and execution of
   * a proposal.
   */
  readonly part: number;
}

/** An effect as the agent requests it; it must be the same in every replay. */
export interface Operation extends Place {
  readonly kind: OperationKind;
  /** SHA-256 of the arguments, in hex. */
  readonly argsDigest: string;
}

/** An effect and its result. */
export interface JournalEntry extends Operation {
  /** Plain JSON. */
  readonly value: unknown;
  /** Version of the operation under which the entry was recorded; default: the current one. */
  readonly version?: number;
}

/**
 * Versions of the operations whose arguments or values changed since the first release; the others have version 1. A
 * change that makes test/recorded-journals.test.ts fail must raise the version of the changed operation here: entries
 * of an earlier version are replayed without a comparison of their arguments, and workers with earlier code leave the
 * agent to workers with the new code (BD-6).
 */
const VERSIONS: Readonly<Partial<Record<OperationKind, number>>> = {};

/** Returns the current version of an operation. */
function versionOf(kind: OperationKind): number {
  return VERSIONS[kind] ?? 1;
}

/**
 * Returns the text with which a journal records an operation and its version: `llm` for version 1, `llm@2` for version
 * 2.
 */
export function recordedKind(kind: OperationKind, version = versionOf(kind)): string {
  return version === 1 ? kind : `${kind}@${version}`;
}

/** Reads the text of {@link recordedKind}. */
export function readRecordedKind(text: string): {
  readonly kind: OperationKind;
  readonly version: number;
} {
  const [kind = '', version = '1'] = text.split('@');
  return { kind: kind as OperationKind, version: Number(version) };
}

/**
 * Whether an entry belongs to a proposal or delegation that `branch` requests at position `from` or later, or that is
 * requested by a branch that `branch` starts at such a position.
 */
export function isProposalAfter(
  { kind, branch: path, position }: Operation,
  branch: string,
  from: number,
): boolean {
  if (kind !== 'review' && kind !== 'spawn') return false;
  if (path === branch) return position >= from;
  const prefix = branch === '' ? '' : `${branch}.`;
  return path.startsWith(prefix) && Number.parseInt(path.slice(prefix.length), 10) >= from;
}

/** Maximum length of ids that services accept. */
const MAX_ID_LENGTH = 64;

/** Returns the call_id of an operation, the same in every replay (RT-1). */
export function callIdOf({ branch, position }: Pick<Place, 'branch' | 'position'>): string {
  const path = branch === '' ? '' : `${branch.replaceAll('.', '-')}-`;
  const id = `op-${path}${position}`;
  return id.length <= MAX_ID_LENGTH ? id : derivedId('op', branch, String(position));
}

/**
 * Compares a requested operation with the journaled operation at the same position. The arguments of an
 * entry of an earlier version are not compared; an entry of a later version always diverges.
 * @param current version of the requested operation
 * @throws DataLossError JOURNAL_DIVERGENCE with the position and both operations (RT-1)
 */
export function assertSameOperation(
  recorded: Operation & Pick<JournalEntry, 'version'>,
  asked: Operation,
  agent: string,
  current = versionOf(asked.kind),
): void {
  const sameKind = recorded.kind === asked.kind;
  const { version = current } = recorded;
  if (sameKind && version > current) {
    const known = `supports ${asked.kind} only up to version ${current}, not version ${version}`;
    throw divergence(agent, recorded, known);
  }
  if (sameKind && (version < current || recorded.argsDigest === asked.argsDigest)) return;
  throw divergence(
    agent,
    recorded,
    sameKind
      ? `requested ${asked.kind} with different arguments (${short(recorded)} recorded, ${short(asked)} requested)`
      : `requested ${asked.kind} (${short(asked)})`,
  );
}

/**
 * Checks that an agent has requested all journaled operations when its `run` returns or it saves a checkpoint.
 * @param asked returns the number of operations that a branch has requested
 * @throws DataLossError JOURNAL_DIVERGENCE naming the first operation that was not requested
 */
export function assertAllReplayed(
  entries: Iterable<Operation>,
  asked: (branch: string) => number,
  agent: string,
): void {
  for (const entry of entries) {
    if (entry.position < asked(entry.branch)) continue;
    throw divergence(agent, entry, 'did not request it');
  }
}

/**
 * Checks that an agent restores its checkpoint at the position at which it called restore before it saved the
 * checkpoint, and requests no other operation at that position.
 * @param prologue number of operations before the recorded restore
 * @param asked number of operations requested so far
 * @param instead the operation that is requested instead of the restore
 * @throws DataLossError JOURNAL_DIVERGENCE with the position and both operations
 */
export function assertSamePrologue(
  prologue: number,
  asked: number,
  agent: string,
  instead?: Operation,
): void {
  if (instead === undefined ? asked === prologue : asked < prologue) return;
  const now = instead === undefined ? `did so at index ${asked}` : `requested ${instead.kind}`;
  throw new DataLossError(
    'JOURNAL_DIVERGENCE',
    `${agent} diverges from its journal at index ${prologue}: it restored its checkpoint there, but now it ${now}.`,
    {
      position: String(prologue),
      call_id: callIdOf({ branch: '', position: prologue }),
      recorded: 'checkpoint',
      agent,
    },
  );
}

function divergence(agent: string, recorded: Operation, now: string): DataLossError {
  return new DataLossError(
    'JOURNAL_DIVERGENCE',
    `${agent} diverges from its journal at index ${indexOf(recorded)}: recorded ${recorded.kind} (${short(recorded)}), but the agent ${now}.`,
    { position: indexOf(recorded), call_id: callIdOf(recorded), recorded: recorded.kind, agent },
  );
}

function indexOf({ branch, position }: Place): string {
  return branch === '' ? String(position) : `${branch}.${position}`;
}

function short({ argsDigest }: Operation): string {
  return argsDigest.slice(0, 12);
}
