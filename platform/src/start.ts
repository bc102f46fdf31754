/**
 * Program of `npm start`: runs the whole platform in one process, prints the progress of the demo, and keeps running
 * after the demo has ended.
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

/** Outcome of the displayed runs. */
type Shown = 'well' | 'badly' | 'failed' | 'stopped';

const EXIT_STATUS: Readonly<Record<Shown, number>> = { well: 0, badly: 1, failed: 2, stopped: 0 };

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
  const session = await openSession(process.env, { example, script: options.script, dataDir });
  try {
    stopwatch.lap('start-up');
    console.log(`Writ is up: data in ${dataDir}, model ${session.model.description}.`);
    const { platform } = session;
    await showAddresses(platform, console.log);
    if (!options.exit) {
      const file = join(dataDir, DEV_API_KEY_FILE);
      console.log(`API key   ${platform.apiKey}   for development only, also in ${file}`);
    }
    const shown = await Promise.race([
      show(session, { options, example, human, stopwatch, stop }),
      stopped,
    ]);
    if (!options.exit && shown !== 'stopped') {
      await hint(session, example);
      await stopped;
    }
    return options.exit ? EXIT_STATUS[shown] : 0;
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
async function show(session: Session, demo: Demo): Promise<Shown> {
  try {
    return demo.options.noDemo ? 'well' : await showRuns(session, demo);
  } catch (error) {
    // The streams of a stopped platform end with an error.
    if (demo.stop.aborted) return 'stopped';
    console.error(explain(error));
    return 'failed';
  }
}

/**
 * Resumes the unfinished runs of an earlier demo. Runs the example instead if no such run exists, or if the job of the
 * example was not started yet. Does not follow runs of other callers.
 */
async function showRuns(session: Session, shown: Demo): Promise<Shown> {
  const { example, stopwatch } = shown;
  const { demo, others } = await session.unfinished();
  if (others.length > 0) {
    console.log(`Unfinished runs of other callers continue: ${others.length}.`);
  }
  const agents = await agentNames(session);
  if (demo.length === 0 && !agents.includes(example.agent)) {
    console.log(
      `The demo was not started, because the agents file does not define the agent ${example.agent}.\n`,
    );
    return 'well';
  }
  console.log('');
  // An earlier start may have ended between the additional runs of the example and its job.
  const finished = await (demo.every((run) => isBeforeJob(example, run))
    ? runExample(session, demo, shown)
    : resumeAll(session, demo, shown));
  stopwatch.lap('run');
  console.log(`time: ${stopwatch.report()}\n`);
  return finished.every((run) => run.result?.status === RunStatus.OK) ? 'well' : 'badly';
}

async function runExample(session: Session, left: readonly Run[], demo: Demo): Promise<Run[]> {
  const { follower, onStart, end } = followerOf(demo);
  return [end(await session.runJob(demo.human, { ...follower, onStart }, left))];
}

/** Whether the run is one that the example starts before its job. */
function isBeforeJob(example: Example, run: Run): boolean {
  return example.before.some(({ agent, goal }) => agent === run.agent?.name && goal === run.goal);
}

/**
 * Resumes runs in parallel, because one run may wait for another. Additional runs of the example are displayed as they
 * were at their first start.
 */
async function resumeAll(session: Session, runs: readonly Run[], demo: Demo): Promise<Run[]> {
  const voice: Voice = { speaker: '' };
  const resumed = (run: Run, follower: RunFollower) => session.resume(run, demo.human, follower);
  const before = runs.filter((run) => isBeforeJob(demo.example, run));
  const beside = followerOf(demo, voice);
  const others = before.map((run) => {
    beside.follower.onBefore(run);
    return resumed(run, { ...beside.follower, onEvent: () => undefined });
  });
  const jobs = runs.filter((run) => !before.includes(run));
  const ended = await Promise.all(
    jobs.map(async (job) => {
      console.log('Resuming a run that an earlier start left unfinished.');
      const { follower, onStart, end } = followerOf(demo, voice);
      onStart(job);
      const run = await resumed(job, follower);
      return () => end(run);
    }),
  );
  const left = await Promise.all(others);
  for (const run of left) beside.follower.onOther(run);
  return [...left, ...ended.map((end) => end())];
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
