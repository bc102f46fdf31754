import { canonicalDigest, type JsonObject } from '@writ/kernel';
import type { JournalEntry, Operation, OperationKind } from '../../domain/journal/entry.ts';
import type { RunScope } from '../scope.ts';
import { BranchSuspended, CodeMismatched, Unwinding } from '../unwinding.ts';
import type { NumberedCall } from './journal.ts';

/** Optional parts of an operation that calls another service. */
interface RemoteOptions<T> {
  /** Takes the value that was read at the delivery; undefined when there is none. */
  readonly delivered?: () => T | undefined;
  /** Whether a repeated call could return another result than `value`; by default, only a read could. */
  readonly isVolatile?: (value: T) => boolean;
}

/** State that the branches of one lease share. */
export interface SharedState {
  /** The unwinding that stops all branches. */
  unwinding: Unwinding | undefined;
  hasEnded: boolean;
}

/**
 * The operations of one branch of an agent: each is journaled, or its recorded result is returned (RT-1). After an
 * unwinding, every operation is rejected, even if the agent caught the unwinding.
 */
export class JournaledOperations {
  readonly #scope: RunScope;
  readonly #shared: SharedState;
  /** The wait of this branch; undefined while it runs. */
  #wait: BranchSuspended | undefined;

  constructor(scope: RunScope, shared: SharedState) {
    this.#scope = scope;
    this.#shared = shared;
  }

  /**
   * Checks that the agent may continue.
   * @throws Unwinding, including an earlier one that the agent may have caught
   */
  check(): void {
    this.#assertNotUnwinding();
    // An unwinding is permanent, even if the agent regains its slot before the next operation.
    this.sticky(() => this.#scope.session.check(this.#scope.journal.isReplaying));
  }

  /**
   * The unwinding of the agent or of this branch, which the agent may have caught; undefined if there is none. After an
   * approved final answer, only a mismatch of the code keeps the agent from ending.
   */
  get unwinding(): Unwinding | undefined {
    const { unwinding, hasEnded } = this.#shared;
    if (hasEnded) return unwinding instanceof CodeMismatched ? unwinding : undefined;
    return unwinding ?? this.#wait;
  }

  /** Runs an operation that calls no other service. */
  local<T extends number | JsonObject | null>(
    kind: OperationKind,
    args: unknown,
    live: (callId: string) => T,
  ): T {
    this.check();
    const { journal, cursor } = this.#scope;
    const call = cursor.next();
    const operation = operationOf(call, kind, args);
    const recorded = this.sticky((): JournalEntry | undefined => journal.recall(operation));
    if (recorded !== undefined) return recorded.value as T;
    const value = live(call.callId);
    journal.record({ ...operation, value }, kind === 'now' || kind === 'random');
    return value;
  }

  /**
   * Runs an operation that calls another service or uses the worker's store. Before an effect, the pending entries are
   * committed if a replay could change one of them; the effect itself is idempotent by call_id. A volatile result is
   * committed before the next effect, because a repeated call may return another result; the value of `delivered` is
   * stored with the delivery and requires no such commit.
   */
  async remote<T>(
    kind: OperationKind,
    args: unknown,
    access: 'read' | 'effect',
    live: (callId: string) => Promise<T>,
    { delivered, isVolatile = () => access === 'read' }: RemoteOptions<T> = {},
  ): Promise<{ readonly callId: string; readonly value: T }> {
    return await this.guarded(async () => {
      const { journal, commits, session, cursor } = this.#scope;
      const call = cursor.next();
      const { callId } = call;
      const operation = operationOf(call, kind, args);
      const recorded = journal.recall(operation);
      if (recorded !== undefined) return { callId, value: recorded.value as T };
      session.check();
      // Only an operation outside of branches uses the value that was read at the delivery: concurrent branches may
      // request it in another order in each replay.
      const first = cursor.branch === '' ? delivered?.() : undefined;
      if (first !== undefined) {
        journal.record({ ...operation, value: first }, false);
        return { callId, value: first };
      }
      if (access === 'effect') await commits.beforeEffect();
      const value = await live(callId);
      journal.record({ ...operation, value }, isVolatile(value));
      return { callId, value };
    });
  }

  /** Runs work that waits; an unwinding that it throws is permanent. */
  async guarded<T>(work: () => Promise<T>): Promise<T> {
    this.#assertNotUnwinding();
    try {
      return await work();
    } catch (error) {
      if (error instanceof Unwinding) throw this.unwind(error);
      throw error;
    }
  }

  /** Runs work that does not wait; an unwinding that it throws is permanent. */
  sticky<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw error instanceof Unwinding ? this.unwind(error) : error;
    }
  }

  /** Makes an unwinding permanent; returns the first one. */
  unwind(unwinding: Unwinding): Unwinding {
    if (unwinding instanceof BranchSuspended) {
      this.#wait ??= unwinding;
      return this.#wait;
    }
    this.#shared.unwinding ??= unwinding;
    return this.#shared.unwinding;
  }

  #assertNotUnwinding(): void {
    if (this.#shared.unwinding !== undefined) throw this.#shared.unwinding;
    if (this.#wait !== undefined) throw this.#wait;
  }
}

function operationOf(
  { branch, position }: NumberedCall,
  kind: OperationKind,
  args: unknown,
): Operation {
  return { branch, position, part: 0, kind, argsDigest: canonicalDigest(args) };
}
