import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { InternalError, UnavailableError } from '@writ/kernel';
import { endless, partialRoute } from '@writ/rpc';
import { expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';
import { startScriptedEdge } from './scripted-edge.ts';

const RUN = { runId: 'run_1', result: { status: RunStatus.OK, stopReason: 'success' } };
const DRAINING = new UnavailableError('DRAINING', 'The server is shutting down; retry.');
const hook = (sequence: bigint) => ({
  event: { sequence, entry: { case: 'hook' as const, value: {} } },
});

/**
 * A platform whose first watch ends with `error` after one message. Later watches of a run end with its result; later
 * watches of approvals fail after the next approval.
 */
async function stoppingPlatform(error: Error) {
  const watchedAfter: bigint[] = [];
  let approvalWatches = 0;
  const pending = { approvalId: 'a', state: ApprovalState.PENDING };
  const env = await startScriptedEdge([
    partialRoute(RunService, {
      startRun: async () => ({ run: RUN }),
      getRun: async () => ({ run: RUN }),
      watchRun: endless(async function* ({ afterSequence }) {
        watchedAfter.push(afterSequence);
        if (watchedAfter.length === 1) {
          yield hook(1n);
          throw error;
        }
        yield { event: { sequence: 2n, entry: { case: 'result' as const, value: RUN.result } } };
      }),
    }),
    partialRoute(ApprovalService, {
      getApproval: async ({ approvalId }) => ({ approval: { ...pending, approvalId } }),
      watchApprovals: endless(async function* () {
        approvalWatches += 1;
        yield { approval: pending };
        if (approvalWatches === 1) throw error;
        yield { approval: { ...pending, approvalId: 'b' } };
        throw new InternalError('INTERNAL', 'End of the test.');
      }),
    }),
  ]);
  const out: string[] = [];
  const err: string[] = [];
  const writ = async (args: readonly string[]) => {
    const io = {
      env,
      print: (line: string) => out.push(line),
      warn: (line: string) => err.push(line),
    };
    return { exit: await runCli(args, io), out, err };
  };
  return { writ, watchedAfter };
}

it.each([
  ['run', ['run', 'worker', 'Go.', '-o', 'json'], ['1', '2']],
  ['runs watch', ['runs', 'watch', 'run_1', '-o', 'json'], ['1', '2']],
  ['observe', ['observe', 'run_1'], []],
] as const)(
  'writ %s continues after the last event when the platform restarts (PE-2)',
  async (_, args, sequences) => {
    const { writ, watchedAfter } = await stoppingPlatform(DRAINING);
    const { exit, out, err } = await writ(args);
    expect({ exit, err }).toEqual({ exit: 0, err: [] });
    expect(watchedAfter).toEqual([0n, 1n]);
    const seen = out.map((line) => (JSON.parse(line) as { sequence: string }).sequence);
    expect(seen).toEqual(sequences);
  },
);

it('writ approvals watch continues when the platform restarts, and prints each approval once (PE-2)', async () => {
  const { writ } = await stoppingPlatform(DRAINING);
  const { out, err } = await writ(['approvals', 'watch', '-o', 'json']);
  const seen = out.map((line) => (JSON.parse(line) as { approvalId: string }).approvalId);
  expect({ seen, err }).toEqual({ seen: ['a', 'b'], err: ['End of the test.'] });
});

it.each([
  ['run', ['run', 'worker', 'Go.']],
  ['runs watch', ['runs', 'watch', 'run_1']],
] as const)(
  'writ %s exits with 2 after another error, and prints how to watch the run (PE-2, SYS-3)',
  async (_, args) => {
    const { writ, watchedAfter } = await stoppingPlatform(new InternalError('INTERNAL', 'Bug.'));
    const { exit, err } = await writ(args);
    expect({ exit, err }).toEqual({
      exit: 2,
      err: ['Bug.', 'Run run_1 may continue: writ runs watch run_1.'],
    });
    expect(watchedAfter).toEqual([0n]);
  },
);
