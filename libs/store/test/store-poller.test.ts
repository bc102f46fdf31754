import { expect, it } from 'vitest';
import type { Replicas } from '../src/index.ts';
import { StorePoller } from '../src/index.ts';

it('does not poll after a stop, even if a hint came during the last poll (SYS-4)', async () => {
  let hint = (): void => undefined;
  const replicas = {
    shared: false,
    onHint: (_: string, listener: () => void) => {
      hint = listener;
      return () => undefined;
    },
  } as unknown as Replicas;
  const polls: PromiseWithResolvers<void>[] = [];
  const poller = new StorePoller({
    replicas,
    topic: 'freezes',
    intervalMs: 1_000,
    isNeeded: () => true,
    poll: () => {
      const begun = Promise.withResolvers<void>();
      polls.push(begun);
      return begun.promise;
    },
    onError: () => undefined,
  });
  hint();
  hint();
  const stopped = poller.stop();
  polls[0]?.resolve();
  await stopped;
  await new Promise((resolve) => setImmediate(resolve));
  expect(polls).toHaveLength(1);
});
