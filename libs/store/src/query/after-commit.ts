const actions = new WeakMap<object, (() => void)[]>();

/**
 * Runs `action` when `trx` is durable, and never when it is undone: for what cannot be undone, such as a count or a line
 * of the log. It must not throw.
 */
export function afterCommit(trx: object, action: () => void): void {
  const registered = actions.get(trx);
  if (registered === undefined) actions.set(trx, [action]);
  else registered.push(action);
}

/** Runs what was registered for `trx`, in order; the store calls it once, after the commit. */
export function runAfterCommit(trx: object): void {
  const registered = actions.get(trx);
  if (registered === undefined) return;
  actions.delete(trx);
  for (const action of registered) action();
}
