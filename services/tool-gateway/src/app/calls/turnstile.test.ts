import { describe, expect, it } from 'vitest';
import { Turnstile } from './turnstile.ts';

describe('the turnstile before the checks of a call (TG-6)', () => {
  it('lets no more in than there are places, and lane by lane in the order they came', async () => {
    const turnstile = new Turnstile(2);
    const entered: string[] = [];
    const held = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
    const pass = (lane: string, index: number) =>
      turnstile.pass(lane, async () => {
        entered.push(`${lane}${index}`);
        await held[index]?.promise;
      });
    const passed = [pass('a', 0), pass('a', 1), pass('a', 2), pass('a', 3), pass('b', 4)];
    passed.push(pass('c', 5));
    expect(entered).toEqual(['a0', 'a1']);
    for (const { resolve } of held) resolve();
    await Promise.all(passed);
    expect(entered).toEqual(['a0', 'a1', 'a2', 'b4', 'c5', 'a3']);
  });

  it('goes on after a call that failed', async () => {
    const turnstile = new Turnstile(1);
    const failed = turnstile.pass('a', () => Promise.reject(new Error('Bad.')));
    const next = turnstile.pass('a', async () => 'well');
    await expect(failed).rejects.toThrow('Bad.');
    expect(await next).toBe('well');
  });
});
