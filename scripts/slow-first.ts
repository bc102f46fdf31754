import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** From those that take longest: whatever begins last should be over soon. */
const SLOW: readonly RegExp[] = [
  /^test\/load\//,
  /^(test\/conformance|platform)\//,
  /^test\/(e2e|distributed|interop)\//,
  /^deploy\//,
  /(crash|faults|kill|mutations|replicas)\.test\.ts$/,
  /^services\/[^/]+\/test\//,
];

/**
 * Begins the test files that wait for processes and platforms first, so that the quick ones fill the gaps
 * and the run does not end with one slow file alone.
 */
export class SlowFirst extends BaseSequencer {
  /** Within a group the order of vitest stays: what failed, then what took longest, is first. */
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
