import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends a vitest run with one line for log readers: `tests: 12 passed, 0 failed`. With retries (`--retry`), a line
 * before it names each test that needed a retry: each of these tests is a defect.
 */
export default class CountReporter implements Reporter {
  /** Counts the tests; a file that cannot be collected and an error outside any test are counted as failed, too. */
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    const flaky: string[] = [];
    for (const module of modules) {
      counts.failed += module.errors().length;
      for (const test of module.children.allTests()) {
        counts[test.result().state] += 1;
        if (test.diagnostic()?.flaky) flaky.push(`flaky: ${module.moduleId} > ${test.fullName}`);
      }
    }
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    // On exit, since other reporters print their summaries on the same event.
    process.once('exit', () => {
      for (const line of flaky) console.log(line);
      console.log(`tests: ${counts.passed} passed, ${counts.failed} failed${skipped}`);
    });
  }
}
