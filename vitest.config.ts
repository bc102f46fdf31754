import { defineConfig } from 'vitest/config';

const tests = (...folders: string[]) => folders.map((folder) => `${folder}/**/*.test.ts`);

export default defineConfig({
  test: {
    reporters: ['dot', './scripts/count-reporter.ts'],
    silent: 'passed-only',
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: tests('libs', 'services', 'examples', 'clients', 'scripts'),
        },
      },
      { extends: true, test: { name: 'platform', include: tests('platform', 'test') } },
    ],
  },
});
