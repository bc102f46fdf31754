import { canonicalDigest } from '@writ/kernel';
import type { Operation } from '../domain/journal/entry.ts';
import type { RunScope } from './scope.ts';
import { sleepUntil } from './signals.ts';
import { BranchWaits, CameMeanwhile, Unwinding } from './unwinding.ts';

/**
 * Runs branches side by side. Each numbers its operations by itself, so that their ids do not depend
 * on which of them is faster (RT-1). All have come to rest when this answers or throws: what takes the
 * agent down comes first, then a wait, then the first error by the order of the branches.
 */
export async function runBranches<T>(
  scope: RunScope,
  branches: readonly ((scope: RunScope) => Promise<T>)[],
): Promise<T[]> {
  const { journal, lane, session } = scope;
  const { branch, position } = lane.next();
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
        await work({ ...scope, lane: journal.lane(`${prefix}${position}.${index}`) }),
    ),
  );
  const thrown = settled.flatMap((one) =>
    one.status === 'rejected' ? [one.reason as unknown] : [],
  );
  const down = thrown.find(
    (error) => error instanceof Unwinding && !(error instanceof BranchWaits),
  );
  if (down !== undefined) throw down;
  const names = thrown.flatMap((error) => (error instanceof BranchWaits ? error.names : []));
  if (names.length > 0) await waitForAny(scope, [...new Set(names)]);
  if (thrown.length > 0) throw thrown[0];
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

async function waitForAny(scope: RunScope, names: readonly string[]): Promise<never> {
  if (scope.lane.branch !== '') throw new BranchWaits(names);
  await sleepUntil(scope, names);
  throw new CameMeanwhile('What the agent waits for has come.');
}
