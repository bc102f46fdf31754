/**
 * Does `list` when it is asked to, one at a time; asked meanwhile, it does it once more.
 * @param onError told of failures; the next time that it is asked it tries again
 */
export function listing(
  list: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  let again = false;
  const run = async (): Promise<void> => {
    do {
      again = false;
      await list().catch(onError);
    } while (again);
    underWay = undefined;
  };
  return () => {
    again = underWay !== undefined;
    underWay ??= run();
    return underWay;
  };
}
