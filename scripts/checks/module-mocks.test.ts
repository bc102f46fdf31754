import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** A call that replaces or reloads modules, which every later test file of the process would get, too. */
const REPLACES_MODULES = /\bvi\s*\.\s*(?:mock|doMock|importMock|resetModules)\s*\(/;

// Test files share a process and its loaded modules: `isolate: false` in vitest.config.ts.
describe('modules that test files share', () => {
  it('are replaced by no test', () => {
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
    'would be found replaced by vi.%s',
    (name) => {
      expect(REPLACES_MODULES.test(`vi.${name}('./clock.ts');`)).toBe(true);
    },
  );
});
