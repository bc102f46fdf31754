import { defineConfig } from 'vitest/config';

const tests = (...folders: string[]) => folders.map((folder) => `${folder}/**/*.test.ts`);

export default defineConfig({
  test: {
    reporters: ['minimal', './scripts/count-reporter.ts'],
    silent: 'passed-only',
    pool: 'forks',
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          // Several services must be able to share a process anyway, and it makes the suite more than twice as fast.
          isolate: false,
          include: tests('libs', 'services', 'examples', 'clients', 'scripts'),
        },
      },
      { extends: true, test: { name: 'platform', include: tests('platform', 'test') } },
    ],
  },
});
