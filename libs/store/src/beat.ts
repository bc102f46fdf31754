const beats = new Map<number, Promise<void>>();

/**
 * Resolves at most `ms` milliseconds from now, at the same moment for everybody in this process who
 * waits that long: what they do then meets, and shares its commits.
 */
export function nextBeat(ms: number): Promise<void> {
  const under = beats.get(ms);
  if (under !== undefined) return under;
  const { promise, resolve } = Promise.withResolvers<void>();
  beats.set(ms, promise);
  setTimeout(() => {
    beats.delete(ms);
    resolve();
  }, ms);
  return promise;
}
