import { vi } from 'vitest';

/** How a test looks for a fact: on a busy machine it comes true late, and vitest gives up after one second. */
const PATIENCE = { timeout: 30_000, interval: 20 } as const;

const { waitFor, waitUntil } = vi;

// Test files share processes, and each of them comes by here.
if (waitFor.name !== 'waitPatientlyFor') {
  vi.waitFor = function waitPatientlyFor(look, options) {
    return waitFor(look, { ...PATIENCE, ...given(options) });
  };
  vi.waitUntil = (look, options) => waitUntil(look, { ...PATIENCE, ...given(options) });
}

function given<Options extends object>(options: number | Options | undefined) {
  return typeof options === 'number' ? { timeout: options } : options;
}
