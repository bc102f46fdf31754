import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { WritClient } from '@writ/client';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { newId, omitUndefined } from '@writ/kernel';
import { type Telemetry, withSpan } from '@writ/telemetry';
import { DEMO_SUBJECT } from './demo-people.ts';
import type { Example } from './example.ts';
import { createSignalAnswers } from './terminal/answer-signals.ts';
import {
  awaitWaiting,
  type FollowerClient,
  followRun,
  type RunFollower,
} from './terminal/follow-run.ts';
import type { Human } from './terminal/human.ts';

/** Callbacks of a follower of a job, in addition to the events of its run. */
export interface JobFollower extends RunFollower {
  onStart(run: Run): void;
  /** An additional run of the example has started. */
  onBefore?(run: Run): void;
  /** An additional run of the example has ended. */
  onOther?(run: Run): void;
}

/** The runs of the demo. Only these runs are followed, so a simulated person can decide only their approvals. */
export interface DemoRuns {
  /**
   * Starts the job of the example and follows it to its end; the whole run is one trace that begins here. Additional
   * runs of the example are started before the job, except those in `left`, which an earlier start of the demo left
   * unfinished and which have not ended. All of them have ended when the returned promise resolves.
   */
  runJob(human: Human, follower: JobFollower, left?: readonly Run[]): Promise<Run>;
  /** Follows a run of an earlier start of the demo until the run ends. */
  resume(run: Run, human: Human, follower: RunFollower): Promise<Run>;
  /**
   * Returns the runs that an earlier start left unfinished: `demo` are those of the demo, including those among the
   * newest 500 runs that have ended since this start, because the platform resumes runs by itself; `others` are those
   * of other callers that have not ended.
   */
  unfinished(): Promise<{ readonly demo: readonly Run[]; readonly others: readonly Run[] }>;
}

interface DemoParts {
  /** A client with the development key, which decides approvals for the person at the terminal. */
  readonly client: WritClient;
  /** A client of {@link DEMO_SUBJECT}. */
  readonly starter: WritClient;
  /** A client of the simulated approver. */
  readonly simulated: WritClient;
  readonly tracer: Telemetry['tracer'];
  readonly example: Example;
  /** The agent that does the job. */
  readonly agent: string;
  /** Model alias for the job; undefined uses that of the agent. */
  readonly model: string | undefined;
  /** When this start began, before the platform resumed runs. */
  readonly startTime: Date;
}

const UNFINISHED = [
  RunState.PENDING,
  RunState.RUNNING,
  RunState.WAITING_FOR_INPUT,
  RunState.SUSPENDED,
  RunState.PARKED,
  RunState.ENDING,
];

/** How many of the newest runs are searched for runs that have ended since the start. */
const NEWEST_RUNS = 500;

/**
 * Creates the runs of the demo. The simulated approver answers with its own identity, never with that of the developer.
 */
export function createDemoRuns(parts: DemoParts): DemoRuns {
  const { client, starter, simulated, tracer, example, agent, model, startTime } = parts;
  const { runs } = starter;
  const as = ({ isPerson }: Human): FollowerClient => ({
    runs,
    approvals: (isPerson ? client : simulated).approvals,
  });
  const answer = createSignalAnswers(starter, example.signals);
  const start = async (request: { agent: string; goal: string; model?: string }): Promise<Run> => {
    const { run } = await runs.startRun({ requestId: newId('req'), ...request });
    if (run === undefined) throw new Error('StartRun returned no run.');
    return run;
  };
  return {
    unfinished: async () => {
      const found: Run[] = [];
      let pageToken = '';
      do {
        const request = { states: UNFINISHED, oldestFirst: true, pageToken };
        const page = await client.runs.listRuns(request);
        found.push(...page.runs);
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      // Read after the unfinished runs, so that a run that ends in between is not missed.
      const newest = await client.runs.listRuns({ pageSize: NEWEST_RUNS });
      const endedSinceStart = newest.runs
        .filter(({ endTime }) => endTime !== undefined && timestampDate(endTime) >= startTime)
        .toReversed();
      const left = new Map([...found, ...endedSinceStart].map((run) => [run.runId, run]));
      const isDemo = ({ createdBy }: Run) => createdBy === DEMO_SUBJECT;
      return {
        demo: [...left.values()].filter(isDemo),
        others: [...left.values()].filter((run) => !isDemo(run) && run.endTime === undefined),
      };
    },
    resume: (run, human, follower) =>
      followRun(as(human), run.runId, human, { ...follower, answer }),
    runJob: (human, follower, left = []) =>
      withSpan(tracer, `run ${example.name}`, {}, async () => {
        const others: Run[] = [];
        for (const { agent: other, goal } of example.before) {
          const run =
            left.find((one) => one.agent?.name === other && one.goal === goal) ??
            (await start({ agent: other, goal }));
          await awaitWaiting(starter, run.runId);
          others.push(run);
          follower.onBefore?.(run);
        }
        const { goal } = example;
        const run = await start({ agent, goal, ...omitUndefined({ model }) });
        follower.onStart(run);
        const ended = await followRun(as(human), run.runId, human, { ...follower, answer });
        for (const { runId } of others) {
          const quiet = { ...follower, onEvent: () => undefined };
          follower.onOther?.(await followRun(as(human), runId, human, quiet));
        }
        return ended;
      }),
  };
}
