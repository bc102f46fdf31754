import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { runCommand } from './command.ts';

/** Arguments that start a run of the refund desk; the caller appends the model. */
export const START = ['run', 'refund-worker', 'Refund order 7.', '--model'];

/** Commands of `writ` against the platform of a test file. */
export interface TestCommands {
  readonly platform: () => TestPlatform;
  /** Runs a command. */
  readonly writ: (
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ) => ReturnType<typeof runCommand>;
  /** Starts a run and returns its id. */
  readonly detached: (model: string) => Promise<string>;
  /** Waits until an approval of the run is pending and returns the id of the approval. */
  readonly pending: (runId: string) => Promise<string>;
}

/** Starts a platform before the tests of the file and closes it after them. */
export function useTestCommands(): TestCommands {
  let test: TestPlatform;
  beforeAll(async () => {
    test = await startTestPlatform();
  });
  afterAll(() => test.close());
  const writ: TestCommands['writ'] = (args, env) => runCommand(test, args, env);
  return {
    platform: () => test,
    writ,
    async detached(model) {
      const { out } = await writ([...START, model, '--detach']);
      return out[0] ?? '';
    },
    async pending(runId) {
      return await vi.waitFor(async () => {
        const { out } = await writ(['approvals', 'list', '--run', runId, '-o', 'json']);
        const { approvals = [] } = JSON.parse(out.join('\n')) as {
          approvals?: { approvalId: string }[];
        };
        expect(approvals).toHaveLength(1);
        return approvals[0]?.approvalId ?? '';
      });
    },
  };
}
