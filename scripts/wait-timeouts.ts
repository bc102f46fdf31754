import { vi } from 'vitest';

/**
 * The default options of `vi.waitFor` and `vi.waitUntil`. The timeout of one second that vitest sets fails on a
 * busy machine, and the configuration has an option for `expect.poll` only, so this setup file wraps both
 * functions. A caller's own options take precedence.
 */
const DEFAULTS = { timeout: 30_000, interval: 20 } as const;

const { waitFor, waitUntil } = vi;

// Test files share processes and each runs this file, but the functions are wrapped once.
if (waitFor.name !== 'waitForWithDefaults') {
  vi.waitFor = function waitForWithDefaults(check, options) {
    return waitFor(check, { ...DEFAULTS, ...toOptions(options) });
  };
  vi.waitUntil = (check, options) => waitUntil(check, { ...DEFAULTS, ...toOptions(options) });
}

function toOptions<Options extends object>(options: number | Options | undefined) {
  return typeof options === 'number' ? { timeout: options } : options;
}
