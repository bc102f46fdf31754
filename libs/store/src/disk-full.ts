import { OverloadedError } from '@writ/kernel';

/** The error of a write for which the disk, or a limit of the database, has no space. */
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

/** Whether an error is {@link diskFull}. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof OverloadedError && error.reason === 'STORE_DISK_FULL';
}
