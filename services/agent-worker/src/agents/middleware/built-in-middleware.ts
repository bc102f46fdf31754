import { cacheChat, cacheFunction } from './built-in/cache.ts';
import { logChat, logFunction, logRun } from './built-in/logging.ts';
import { validateOutput } from './built-in/output-validation.ts';
import { limitChat, limitFunction } from './built-in/rate-limit.ts';
import { redactChat, redactFunction } from './built-in/redaction.ts';
import { retryChat, retryFunction } from './built-in/retry.ts';
import type { MiddlewareRegistry } from './middleware.ts';

/** The middleware that manifests can enable by name (AG-9). */
export const BUILT_IN_MIDDLEWARE: MiddlewareRegistry = {
  agent: { logging: logRun },
  chat: {
    cache: cacheChat,
    logging: logChat,
    output_validation: validateOutput,
    rate_limit: limitChat,
    redaction: redactChat,
    retry: retryChat,
  },
  function: {
    cache: cacheFunction,
    logging: logFunction,
    rate_limit: limitFunction,
    redaction: redactFunction,
    retry: retryFunction,
  },
};
