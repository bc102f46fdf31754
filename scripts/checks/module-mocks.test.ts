import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/**
 * Matches a call that replaces or reloads modules. Every later test file in the same process would use the replaced
 * modules.
 */
const REPLACES_MODULES = /\bvi\s*\.\s*(?:mock|doMock|importMock|resetModules)\s*\(/;

// Test files share a process and its loaded modules: `isolate: false` in vitest.config.ts.
describe('modules that test files share', () => {
  it('are not replaced by any test', () => {
    const files = globSync(
      '{libs,services,examples,clients,scripts,platform,test,deploy}/**/*.ts',
      {
        exclude: ['**/node_modules/**'],
      },
    );
    expect(files).toContain('scripts/wait-timeouts.ts');
    expect(files.filter((file) => REPLACES_MODULES.test(readFileSync(file, 'utf8')))).toEqual([]);
  });

  it.each(['mock', 'doMock', 'importMock', 'resetModules'])(
    'are reported when a test calls vi.%s',
    (name) => {
      expect(REPLACES_MODULES.test(`vi.${name}('./clock.ts');`)).toBe(true);
    },
  );
});
