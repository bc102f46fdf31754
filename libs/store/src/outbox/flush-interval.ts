/** Beats follow each other no sooner than this many times what is waited after a pause. */
const APART = 5;

/** Those who wait the same time, and when they last went on. */
interface Rhythm {
  next: Promise<void> | undefined;
  lastAt: number;
}

const rhythms = new Map<number, Rhythm>();

/**
 * Resolves at the same moment for everybody in this process who waits that long: what they do then
 * meets, and shares its commits. After a pause the moment is `ms` milliseconds from now; in a steady
 * stream it is five times that after the one before, for the more is told together, the less each part
 * of it costs.
 */
export function nextFlush(ms: number): Promise<void> {
  const rhythm = rhythms.get(ms) ?? { next: undefined, lastAt: Number.NEGATIVE_INFINITY };
  rhythms.set(ms, rhythm);
  rhythm.next ??= beat(rhythm, Math.max(ms, rhythm.lastAt + APART * ms - performance.now()));
  return rhythm.next;
}

async function beat(rhythm: Rhythm, ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  rhythm.next = undefined;
  rhythm.lastAt = performance.now();
}
