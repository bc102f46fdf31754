import { ConfigError } from '@writ/config';
import { isWritError } from '@writ/kernel';

/** What a person is told of a failure: the sentence that names what to mend, or else the whole stack. */
export function explain(error: unknown): string {
  if (error instanceof ConfigError || isWritError(error)) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
