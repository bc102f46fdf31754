/**
 * Does `list` when it is asked to, one at a time; asked meanwhile, it does it once more.
 * @param onError told of failures; the next time that it is asked it tries again
 */
export function listing(
  list: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let current: Promise<void> | undefined;
  let again = false;
  const run = async (): Promise<void> => {
    do {
      again = false;
      await list().catch(onError);
    } while (again);
    current = undefined;
  };
  return () => {
    again = current !== undefined;
    current ??= run();
    return current;
  };
}
