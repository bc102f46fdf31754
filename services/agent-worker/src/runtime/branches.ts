import { canonicalDigest } from '@writ/kernel';
import type { Operation } from '../domain/journal/entry.ts';
import type { RunScope } from './scope.ts';
import { suspendUntil } from './signals.ts';
import { BranchSuspended, SignalArrived, Unwinding } from './unwinding.ts';

/**
 * Runs branches concurrently. Each branch numbers its own operations, so that their ids do not depend on timing (RT-1).
 * Returns or throws once all branches have settled. An unwinding of the agent takes precedence over a wait; a wait
 * takes precedence over an error; of several errors, the first one in the order of `branches` is thrown.
 */
export async function runBranches<T>(
  scope: RunScope,
  branches: readonly ((scope: RunScope) => Promise<T>)[],
): Promise<T[]> {
  const { journal, cursor, session } = scope;
  const { branch, position } = cursor.next();
  const argsDigest = canonicalDigest({ branches: branches.length });
  const operation: Operation = { branch, position, part: 0, kind: 'all', argsDigest };
  if (journal.recall(operation) === undefined) {
    session.check();
    journal.record({ ...operation, value: null }, false);
  }
  const prefix = branch === '' ? '' : `${branch}.`;
  const settled = await Promise.allSettled(
    branches.map(
      async (work, index) =>
        await work({ ...scope, cursor: journal.cursor(`${prefix}${position}.${index}`) }),
    ),
  );
  const thrown = settled.flatMap((one) =>
    one.status === 'rejected' ? [one.reason as unknown] : [],
  );
  const unwinding = thrown.find(
    (error) => error instanceof Unwinding && !(error instanceof BranchSuspended),
  );
  if (unwinding !== undefined) throw unwinding;
  const names = thrown.flatMap((error) => (error instanceof BranchSuspended ? error.names : []));
  if (names.length > 0) await suspendUntilAny(scope, [...new Set(names)]);
  if (thrown.length > 0) throw thrown[0];
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

async function suspendUntilAny(scope: RunScope, names: readonly string[]): Promise<never> {
  if (scope.cursor.branch !== '') throw new BranchSuspended(names);
  await suspendUntil(scope, names);
  throw new SignalArrived('A signal that the agent waits for has arrived.');
}
