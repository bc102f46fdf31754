import { expect, it } from 'vitest';
import { readToolGatewayConfig } from './config.ts';

it('rejects a poll interval that exceeds the longest delay of a timer (SYS-3)', () => {
  const read = (WRIT_TOOLS_POLL: string) => readToolGatewayConfig({ WRIT_TOOLS_POLL });
  expect(read('24d').toolsPollMs).toBe(24 * 24 * 3_600_000);
  expect(() => read('50d')).toThrow(/WRIT_TOOLS_POLL/);
});
