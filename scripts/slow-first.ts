import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Slowest groups first, so that the last file is a quick one. */
const SLOW: readonly RegExp[] = [
  /^test\/load\//,
  /^(test\/conformance|platform)\//,
  /^test\/(e2e|distributed|interop)\//,
  /^deploy\//,
  /(crash|faults|kill|mutations|replicas)\.test\.ts$/,
  /^services\/[^/]+\/test\//,
];

/**
 * Runs the test files that wait for processes and platforms first, so that quick files fill the gaps
 * and the run does not end with one slow file.
 */
export class SlowFirst extends BaseSequencer {
  /** Within a group the order of vitest is kept: failed files first, then the slowest. */
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => this.#group(a) - this.#group(b));
  }

  #group({ moduleId }: TestSpecification): number {
    const path = relative(this.ctx.config.root, moduleId);
    const group = SLOW.findIndex((pattern) => pattern.test(path));
    return group === -1 ? SLOW.length : group;
  }
}
