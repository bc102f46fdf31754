import { expect, it } from 'vitest';
import type { Replicas } from '../src/index.ts';
import { StandingLook } from '../src/index.ts';

it('is over when it is stopped, also when a hint came during the last look (SYS-4)', async () => {
  let hint = (): void => undefined;
  const replicas = {
    shared: false,
    onHint: (_: string, listener: () => void) => {
      hint = listener;
      return () => undefined;
    },
  } as unknown as Replicas;
  const looks: PromiseWithResolvers<void>[] = [];
  const look = new StandingLook({
    replicas,
    topic: 'freezes',
    everyMs: 1_000,
    isNeeded: () => true,
    look: () => {
      const begun = Promise.withResolvers<void>();
      looks.push(begun);
      return begun.promise;
    },
    onError: () => undefined,
  });
  hint();
  hint();
  const stopped = look.stop();
  looks[0]?.resolve();
  await stopped;
  await new Promise((resolve) => setImmediate(resolve));
  expect(looks).toHaveLength(1);
});
