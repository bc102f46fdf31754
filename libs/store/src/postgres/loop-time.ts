const STEPS = 20;

/**
 * Calls `over` after `ms` milliseconds in which the event loop ran: time in which it was blocked, or the process paused,
 * counts as one step of twenty, because the answer may have arrived unread meanwhile. Returns the function that cancels
 * it.
 */
export function afterLoopTime(ms: number, over: () => void): () => void {
  const stepMs = Math.ceil(ms / STEPS);
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    timer = setTimeout(
      () => (leftMs <= stepMs ? over() : wait(leftMs - stepMs)),
      Math.min(stepMs, leftMs),
    ).unref();
  };
  wait(ms);
  return () => clearTimeout(timer);
}
