/** `npm start`: the whole platform in one process, with live output of the refund run; keeps running afterwards. */
import { resolve } from 'node:path';
import { type Run, RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { dataDirOf } from './config.ts';
import { chooseHuman } from './console/choose-human.ts';
import { explain } from './console/explain.ts';
import { followRun, type RunFollower } from './console/follow-run.ts';
import type { Human } from './console/human.ts';
import { readOptions } from './console/options.ts';
import { showAddresses } from './console/show-addresses.ts';
import { createRunShow } from './console/show-run.ts';
import { createStopwatch } from './console/stopwatch.ts';
import { loadExample } from './example.ts';
import { openSession, type Session } from './session.ts';

const UNFINISHED = [
  RunState.PENDING,
  RunState.RUNNING,
  RunState.SUSPENDED,
  RunState.PARKED,
  RunState.ENDING,
];

async function start(): Promise<number> {
  const stopwatch = createStopwatch();
  const options = readOptions(process.argv.slice(2), [
    'no-demo',
    'exit',
    'example',
    'script',
    'human',
  ]);
  const example = loadExample(options.example);
  const human = chooseHuman(options.human);
  const dataDir = dataDirOf(process.env) ?? resolve('.writ');
  const session = await openSession(process.env, { example, script: options.script, dataDir });
  const stopped = stopSignal();
  try {
    stopwatch.lap('start-up');
    console.log(`Writ is up: data in ${dataDir}, model ${session.model.description}.\n`);
    const shown = options.noDemo ? 'well' : await showRuns(session, human, stopwatch, stopped);
    if (shown === 'stopped') return 0;
    showAddresses(session.platform, console.log);
    if (!options.exit) await stopped;
    return shown === 'badly' && options.exit ? 1 : 0;
  } finally {
    await session.close();
  }
}

/** Outcome of the displayed runs. */
type Shown = 'well' | 'badly' | 'stopped';

/** Resumes the unfinished runs of an earlier start, else runs the example. */
async function showRuns(
  session: Session,
  human: Human,
  stopwatch: ReturnType<typeof createStopwatch>,
  stopped: Promise<undefined>,
): Promise<Shown> {
  const { runs } = await session.client.runs.listRuns({ states: UNFINISHED, oldestFirst: true });
  const work = async (): Promise<Run[]> => {
    if (runs.length === 0) {
      const { follower, onStart, end } = show(human, stopwatch);
      return [end(await session.runJob(human, { ...follower, onStart }))];
    }
    // In parallel, since one may wait for another.
    return await Promise.all(
      runs.map(async (run) => {
        console.log('Resuming a run that an earlier start left unfinished.');
        const { follower, onStart, end } = show(human, stopwatch);
        onStart(run);
        const { client, answer } = session;
        return end(await followRun(client, run.runId, human, { ...follower, answer }));
      }),
    );
  };
  const finished = await Promise.race([work(), stopped]);
  if (finished === undefined) return 'stopped';
  stopwatch.lap('run');
  console.log(`time: ${stopwatch.report()}\n`);
  return finished.every((run) => run.result?.status === RunStatus.OK) ? 'well' : 'badly';
}

function show(human: Human, stopwatch: ReturnType<typeof createStopwatch>) {
  const runShow = createRunShow((line) => console.log(line));
  const follower: RunFollower = {
    onEvent: runShow.event,
    onQuestion: () => console.log(`    (${human.description})`),
    onRefusedAnswer: (sentence) => console.log(`    ${sentence}`),
    onAnswered: (milliseconds) => stopwatch.exclude('the person', milliseconds),
  };
  const end = (run: Run): Run => {
    runShow.end(run);
    return run;
  };
  return { follower: { ...follower, onOther: runShow.other }, onStart: runShow.start, end };
}

/** Resolves on the first SIGINT or SIGTERM; a second one ends the process immediately. */
function stopSignal(): Promise<undefined> {
  return new Promise((resolveStop) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => resolveStop(undefined));
  });
}

process.exitCode = await start().catch((error: unknown) => {
  console.error(explain(error));
  return 2;
});
