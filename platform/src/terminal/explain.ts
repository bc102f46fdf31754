import { ConfigError } from '@writ/config';
import { isWritError } from '@writ/kernel';

/** The text of an error for the terminal: the message of a named error, or else the whole stack. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError || isWritError(error)) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
