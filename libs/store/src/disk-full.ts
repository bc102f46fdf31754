import { OverloadedError } from '@writ/kernel';

/** Returns the error for a write that fails because the disk is full or the database has reached its size limit. */
export function diskFull(
  label: string,
  metadata: Readonly<Record<string, string>>,
  cause: ErrorOptions,
): OverloadedError {
  return new OverloadedError(
    'STORE_DISK_FULL',
    `disk full: ${label} cannot grow; free space, then retry.`,
    metadata,
    cause,
  );
}

/** Whether an error was created by {@link diskFull}. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof OverloadedError && error.reason === 'STORE_DISK_FULL';
}
