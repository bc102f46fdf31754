import { describe, expect, it } from 'vitest';
import { VerificationQueue } from './verification-queue.ts';

describe('the round-robin queue of writ verifications (TG-6)', () => {
  it('runs at most `limit` tasks at a time and takes waiting tasks queue by queue', async () => {
    const queue = new VerificationQueue(2);
    const started: string[] = [];
    const held = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
    const run = (name: string, index: number) =>
      queue.run(name, async () => {
        started.push(`${name}${index}`);
        await held[index]?.promise;
      });
    const tasks = [run('a', 0), run('a', 1), run('a', 2), run('a', 3), run('b', 4)];
    tasks.push(run('c', 5));
    expect(started).toEqual(['a0', 'a1']);
    for (const { resolve } of held) resolve();
    await Promise.all(tasks);
    expect(started).toEqual(['a0', 'a1', 'a2', 'b4', 'c5', 'a3']);
  });

  it('continues after a task that fails', async () => {
    const queue = new VerificationQueue(1);
    const failed = queue.run('a', () => Promise.reject(new Error('Bad.')));
    const next = queue.run('a', async () => 'well');
    await expect(failed).rejects.toThrow('Bad.');
    expect(await next).toBe('well');
  });
});
