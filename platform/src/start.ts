/**
 * Program of `npm start`: runs the whole platform in one process, prints the progress of the demo, and keeps running
 * after the demo has ended, except with `--exit`.
 */
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { createRunPrinter, type Voice } from '@writ/client/display';
import { type Run, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { DEV_API_KEY_FILE } from '@writ/identity';
import { dataDirOf } from './config.ts';
import { type Example, loadExample } from './example.ts';
import { openSession, type Session } from './session.ts';
import { chooseHuman } from './terminal/choose-human.ts';
import { explain } from './terminal/explain.ts';
import type { RunFollower } from './terminal/follow-run.ts';
import type { Human } from './terminal/human.ts';
import { readOptions, type TerminalOptions } from './terminal/options.ts';
import { showAddresses, showHints } from './terminal/show-addresses.ts';
import { simulationNotice } from './terminal/simulation-notice.ts';
import { stopSignal } from './terminal/stop-signal.ts';
import { createStopwatch } from './terminal/stopwatch.ts';

/**
 * Outcome of the demo. `ok`: every run ended with the status OK, or no run was started; `run_not_ok`: a run ended with
 * another status; `error`: an error was thrown; `stopped`: a signal stopped the process.
 */
type DemoOutcome = 'ok' | 'run_not_ok' | 'error' | 'stopped';

/** Exit statuses with `--exit`; a stopped process may have runs that have not ended. */
const EXIT_STATUS: Readonly<Record<DemoOutcome, number>> = {
  ok: 0,
  run_not_ok: 1,
  error: 2,
  stopped: 1,
};

async function start(): Promise<number> {
  const stopwatch = createStopwatch();
  const options = readOptions(process.argv.slice(2), {
    command: 'npm start',
    about: 'Starts the platform in one process, runs an example, and serves until Ctrl-C.',
    options: ['no-demo', 'exit', 'example', 'script', 'human'],
  });
  if (typeof options === 'string') {
    console.log(options);
    return 0;
  }
  const example = loadExample(options.example);
  const human = chooseHuman(options.human);
  const dataDir = dataDirOf(process.env) ?? resolve('.writ');
  const stop = stopSignal();
  const stopped = aborted(stop);
  const sessionOptions = { example, script: options.script, dataDir };
  const session = await openSession(process.env, sessionOptions).catch((error: unknown) => {
    // An open standard input would keep the process alive.
    human.close?.();
    throw error;
  });
  try {
    stopwatch.lap('start-up');
    console.log(`Writ is up: data in ${dataDir}, model ${session.model.description}.`);
    const { platform } = session;
    await showAddresses(platform, console.log);
    if (!options.exit) {
      const file = join(dataDir, DEV_API_KEY_FILE);
      console.log(`API key   ${platform.apiKey}   for development only, also in ${file}`);
    }
    const outcome = await Promise.race([
      show(session, { options, example, human, stopwatch, stop }),
      stopped,
    ]);
    if (!options.exit && outcome !== 'stopped') {
      await hint(session, example);
      await stopped;
    }
    return options.exit ? EXIT_STATUS[outcome] : 0;
  } finally {
    human.close?.();
    await session.close();
  }
}

interface Demo {
  readonly options: TerminalOptions;
  readonly example: Example;
  readonly human: Human;
  readonly stopwatch: ReturnType<typeof createStopwatch>;
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
}

/** Shows the runs of the demo; an error of one of them does not end the platform. */
async function show(session: Session, demo: Demo): Promise<DemoOutcome> {
  try {
    return demo.options.noDemo ? 'ok' : await showRuns(session, demo);
  } catch (error) {
    // The streams of a stopped platform end with an error.
    if (demo.stop.aborted) return 'stopped';
    console.error(explain(error));
    return 'error';
  }
}

/**
 * Follows the runs that an earlier demo left unfinished, which the platform resumes by itself. Runs the example instead
 * if no such run exists, or if the job of the example was not started yet. Does not follow runs of other callers.
 */
async function showRuns(session: Session, demo: Demo): Promise<DemoOutcome> {
  const { example, stopwatch } = demo;
  const { demo: unfinished, others: runsOfOthers } = await session.unfinished();
  if (runsOfOthers.length > 0) {
    console.log(`Unfinished runs of other callers continue: ${runsOfOthers.length}.`);
  }
  const agents = await agentNames(session);
  if (unfinished.length === 0 && !agents.includes(example.agent)) {
    console.log(
      `The demo was not started, because the agents file does not define the agent ${example.agent}.\n`,
    );
    return 'ok';
  }
  console.log('');
  // An earlier process may have stopped after it started the additional runs of the example and before it started the
  // job.
  const finished = await (unfinished.every((run) => isBeforeJob(example, run))
    ? runExample(session, unfinished.filter(notEnded), demo)
    : resumeAll(session, unfinished, demo));
  stopwatch.lap('run');
  console.log(`time: ${stopwatch.report()}\n`);
  return finished.every((run) => run.result?.status === RunStatus.OK) ? 'ok' : 'run_not_ok';
}

async function runExample(
  session: Session,
  unfinished: readonly Run[],
  demo: Demo,
): Promise<Run[]> {
  const { follower, onStart, end } = followerOf(demo);
  const additional: Run[] = [];
  const onOther = (run: Run): void => {
    additional.push(run);
    follower.onOther(run);
  };
  const job = await session.runJob(demo.human, { ...follower, onStart, onOther }, unfinished);
  return [...additional, end(job)];
}

const notEnded = ({ endTime }: Run): boolean => endTime === undefined;

/** Whether the run is one that the example starts before its job. */
function isBeforeJob(example: Example, run: Run): boolean {
  return example.before.some(({ agent, goal }) => agent === run.agent?.name && goal === run.goal);
}

/**
 * Follows runs in parallel, because one run may wait for another. Additional runs of the example are displayed as they
 * were at their first start.
 */
async function resumeAll(session: Session, runs: readonly Run[], demo: Demo): Promise<Run[]> {
  const voice: Voice = { speaker: '' };
  const follow = (run: Run, follower: RunFollower) => session.resume(run, demo.human, follower);
  const additional = runs.filter((run) => isBeforeJob(demo.example, run));
  const additionalFollower = followerOf(demo, voice);
  const endedAdditional = additional.map((run) => {
    additionalFollower.follower.onBefore(run);
    return follow(run, { ...additionalFollower.follower, onEvent: () => undefined });
  });
  const jobs = runs.filter((run) => !additional.includes(run));
  const ended = await Promise.all(
    jobs.map(async (job) => {
      console.log('Resuming a run that an earlier start left unfinished.');
      const { follower, onStart, end } = followerOf(demo, voice);
      onStart(job);
      const run = await follow(job, follower);
      return () => end(run);
    }),
  );
  const additionalRuns = await Promise.all(endedAdditional);
  for (const run of additionalRuns) additionalFollower.follower.onOther(run);
  return [...additionalRuns, ...ended.map((end) => end())];
}

function followerOf({ human, stopwatch, stop }: Demo, voice?: Voice) {
  const runPrinter = createRunPrinter((line) => console.log(line), voice);
  const follower: RunFollower = {
    onEvent: runPrinter.event,
    onQuestion: simulationNotice(human, console.log),
    onProposal: runPrinter.proposal,
    onSignal: runPrinter.signal,
    onRefusedAnswer: (sentence) => console.log(`    ${sentence}`),
    onUnanswered: (approval) => runPrinter.unanswered(approval, stop.aborted),
    // The time of an answer is excluded from the time of the run only when a person answers.
    ...(human.isPerson && {
      onAnswered: (milliseconds) => stopwatch.exclude('the person', milliseconds),
    }),
  };
  const end = (run: Run): Run => {
    runPrinter.end(run);
    return run;
  };
  return {
    follower: { ...follower, onBefore: runPrinter.before, onOther: runPrinter.other },
    onStart: runPrinter.start,
    end,
  };
}

async function agentNames({ client }: Session): Promise<string[]> {
  const { agents } = await client.runs.listAgents({ pageSize: 500 });
  return agents.map(({ name }) => name);
}

/**
 * Prints a suggested run: the job of the example, or the first defined agent when the agent of the example is not
 * defined.
 */
async function hint(session: Session, example: Example): Promise<void> {
  const agents = await agentNames(session);
  const [first = ''] = agents;
  const suggested = agents.includes(example.agent)
    ? example
    : { agent: first, goal: 'What the agent should do.' };
  showHints(session.platform, { suggested, agents }, console.log);
}

async function aborted(signal: AbortSignal): Promise<'stopped'> {
  if (!signal.aborted) await once(signal, 'abort');
  return 'stopped';
}

process.exitCode = await start().catch((error: unknown) => {
  console.error(explain(error));
  return 2;
});
