import { ConfigError } from '@writ/config';
import { isWritError } from '@writ/kernel';

/**
 * Returns the text of an error for the terminal: the message of a ConfigError or WritError, the stack of any other
 * error.
 */
export function explain(error: unknown): string {
  if (error instanceof ConfigError || isWritError(error)) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
