import { create } from '@bufbuild/protobuf';
import type { CallOptions } from '@connectrpc/connect';
import {
  type Approval,
  ApprovalSchema,
  ApprovalState,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import {
  GetApprovalResponseSchema,
  WatchApprovalsResponseSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import {
  RunAgentResponseSchema,
  WatchRunResponseSchema,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import { CancellationError, InternalError, UnavailableError, type WritError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import type { WritClient } from './client.ts';
import { wordOf } from './display/index.ts';
import { resumeApprovals } from './resume-approvals.ts';
import { resumeWatches } from './resume-watches.ts';

/** Longer than a busy machine takes to run a test. */
const LIMITS = { silenceMs: 60_000, reconnectMs: 60_000 };
const DRAINING = new UnavailableError('DRAINING', 'The server is shutting down; retry.');
const REFUSED = new UnavailableError('UNAVAILABLE', 'connect ECONNREFUSED 127.0.0.1:1');

/** One stream of a script: its messages, then its error; without an error, the stream ends. */
interface Stream<M> {
  readonly messages?: readonly M[];
  readonly error?: WritError;
}

/** Returns a function that opens the streams of a script, one at each call; the last one is repeated. */
function scripted<M>(streams: readonly Stream<M>[]) {
  let opened = 0;
  return async function* open({ signal }: CallOptions = {}): AsyncIterable<M> {
    const { messages = [], error } = streams[Math.min(opened, streams.length - 1)] ?? {};
    opened += 1;
    if (signal?.aborted) throw new CancellationError('The call was cancelled.');
    yield* messages;
    if (error !== undefined) throw error;
  };
}

const event = (sequence: bigint) => ({ sequence, entry: { case: 'hook', value: {} } as const });
const heartbeat = (sequence: bigint) => ({
  sequence,
  entry: { case: 'heartbeat', value: {} } as const,
});
const runEvents = (...sequences: bigint[]) =>
  sequences.map((sequence) => create(WatchRunResponseSchema, { event: event(sequence) }));

/** A RunService whose watches follow the script, and the calls that it received. */
function scriptedRuns(...watches: Stream<ReturnType<typeof runEvents>[number]>[]) {
  const calls: string[] = [];
  const open = scripted(watches);
  const runs = {
    watchRun: ({ runId, afterSequence }, options) => {
      calls.push(`watchRun ${runId} ${afterSequence}`);
      return open(options);
    },
  } as WritClient['runs'];
  return { runs, calls };
}

async function sequencesOf(
  messages: AsyncIterable<{ readonly event?: { readonly sequence: bigint } | undefined }>,
): Promise<bigint[]> {
  return (await Array.fromAsync(messages)).map((message) => message.event?.sequence ?? -1n);
}

describe('a watch of a run', () => {
  it('continues after its last event when the server drains and then refuses connections (PE-2, SYS-3)', async () => {
    const { runs, calls } = scriptedRuns(
      { messages: runEvents(1n, 2n), error: DRAINING },
      { error: REFUSED },
      { messages: [create(WatchRunResponseSchema, { event: heartbeat(2n) })], error: REFUSED },
      { messages: runEvents(3n) },
    );
    const watched = resumeWatches(runs, LIMITS).watchRun({ runId: 'run_1' });
    expect(await sequencesOf(watched)).toEqual([1n, 2n, 3n]);
    expect(calls).toEqual([0n, 2n, 2n, 2n].map((after) => `watchRun run_1 ${after}`));
  });

  it('ends without an error if the connection is lost after the result (PE-2)', async () => {
    const { runs } = scriptedRuns({ messages: runEvents(1n), error: REFUSED }, {});
    const watched = resumeWatches(runs, LIMITS).watchRun({ runId: 'run_1' });
    expect(await sequencesOf(watched)).toEqual([1n]);
  });

  it('fails with the last error after reconnectMs without a message (PE-2, SYS-3)', async () => {
    const { runs } = scriptedRuns({ messages: runEvents(1n), error: DRAINING }, { error: REFUSED });
    const startedAt = performance.now();
    const limits = { ...LIMITS, reconnectMs: 1_500 };
    const seen: bigint[] = [];
    const watch = async () => {
      for await (const { event: one } of resumeWatches(runs, limits).watchRun({ runId: 'run_1' }))
        seen.push(one?.sequence ?? -1n);
    };
    await expect(watch()).rejects.toBe(REFUSED);
    expect(seen).toEqual([1n]);
    expect(performance.now() - startedAt).toBeLessThan(LIMITS.reconnectMs);
  });

  it.each([
    ['an error that is not UNAVAILABLE', new InternalError('INTERNAL', 'Bug.'), LIMITS],
    ['a rejected certificate', new UnavailableError('CERTIFICATE_REJECTED', 'Invalid.'), LIMITS],
    ['DRAINING without reconnectMs', DRAINING, {}],
  ] as const)('fails at once after %s (SYS-3)', async (_, error, limits) => {
    const { runs, calls } = scriptedRuns({ messages: runEvents(1n), error });
    const watched = resumeWatches(runs, limits).watchRun({ runId: 'run_1' });
    await expect(Array.fromAsync(watched)).rejects.toBe(error);
    expect(calls).toHaveLength(1);
  });

  it('fails at once if the server has never responded, but not if it drains (SYS-3)', async () => {
    const unreachable = scriptedRuns({ error: REFUSED });
    const failed = resumeWatches(unreachable.runs, LIMITS).watchRun({ runId: 'run_1' });
    await expect(Array.fromAsync(failed)).rejects.toBe(REFUSED);
    expect(unreachable.calls).toHaveLength(1);
    const draining = scriptedRuns(
      { error: DRAINING },
      { error: REFUSED },
      { messages: runEvents(1n) },
    );
    const watched = resumeWatches(draining.runs, LIMITS).watchRun({ runId: 'run_1' });
    expect(await sequencesOf(watched)).toEqual([1n]);
  });

  it('is cancelled during the pause before it reconnects (SUP-6)', async () => {
    const cancelled = new AbortController();
    const { runs } = scriptedRuns({ messages: runEvents(1n), error: DRAINING });
    const options = { signal: cancelled.signal };
    const watched = resumeWatches(runs, LIMITS).watchRun({ runId: 'run_1' }, options);
    const read = async () => {
      for await (const _ of watched) setImmediate(() => cancelled.abort());
    };
    await expect(read()).rejects.toBeInstanceOf(CancellationError);
  });
});

it('runAgent repeats a start that a draining server rejected, then watches the run that it started (PE-2, BD-5)', async () => {
  const { runs, calls } = scriptedRuns({ messages: runEvents(2n) });
  const openStart = scripted([
    { error: DRAINING },
    {
      messages: [create(RunAgentResponseSchema, { runId: 'run_1', event: event(1n) })],
      error: REFUSED,
    },
  ]);
  runs.runAgent = ({ start }, options) => {
    calls.push(`runAgent ${start?.requestId}`);
    return openStart(options);
  };
  const start = { requestId: 'req-1', agent: 'worker', goal: 'Go.' };
  expect(await sequencesOf(resumeWatches(runs, LIMITS).runAgent({ start }))).toEqual([1n, 2n]);
  expect(calls).toEqual(['runAgent req-1', 'runAgent req-1', 'watchRun run_1 1']);
});

it('a watch of approvals reconnects, and delivers each opened and closed approval once (PE-2, SV-5)', async () => {
  const pending = (approvalId: string) =>
    create(ApprovalSchema, { approvalId, state: ApprovalState.PENDING });
  const message = (approval: Approval) => create(WatchApprovalsResponseSchema, { approval });
  const reads: string[] = [];
  const open = scripted([
    { messages: [message(pending('a')), message(pending('b'))], error: DRAINING },
    { messages: [message(pending('b'))], error: REFUSED },
    {
      // The list can be older than the response of GetApproval, and still contain a closed approval.
      messages: ['a', 'b', 'c'].map((id) => message(pending(id))),
      error: new InternalError('INTERNAL', 'Bug.'),
    },
  ]);
  const approvals = {
    watchApprovals: (_, options) => open(options),
    getApproval: async ({ approvalId = '' }) => {
      reads.push(approvalId);
      // The server stops again while the client reads which approvals have closed.
      if (reads.length === 1) throw REFUSED;
      const state = approvalId === 'a' ? ApprovalState.REJECTED : ApprovalState.PENDING;
      return create(GetApprovalResponseSchema, { approval: { approvalId, state } });
    },
  } as WritClient['approvals'];
  const seen: string[] = [];
  const watch = async () => {
    for await (const { approval } of resumeApprovals(approvals, LIMITS).watchApprovals({}))
      seen.push(`${approval?.approvalId} ${wordOf(ApprovalState, approval?.state ?? 0)}`);
  };
  await expect(watch()).rejects.toThrow('Bug.');
  expect(seen).toEqual(['a pending', 'b pending', 'a rejected', 'c pending']);
});
