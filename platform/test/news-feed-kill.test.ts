import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { loadExample, openSession } from '@writ/platform';
import { readHuman } from '@writ/platform/terminal';
import { readRequestLog } from '@writ/simulator';
import { expect, it } from 'vitest';
import { run, spawnProgram, tempFolder } from './program.ts';

const ARGS = ['--example', 'news-feed', '--exit'];
/** The texts that the two readers write about the three items. */
const CURATED = [
  'Your ferry leaves an hour later from Monday: at seven.',
  "Sunday night is stormy, but Monday's ferry is not affected so far.",
  'Be back in the harbour by six on Sunday: a storm comes.',
  'You start at noon on Sunday, one of forty boats.',
];

/** The agents of all runs of a data folder, with their stop reasons; null for a run that has not ended. */
function runsOf(dataDir: string): unknown[] {
  const database = new DatabaseSync(join(dataDir, 'supervisor.db'), { readOnly: true });
  try {
    return database
      .prepare(
        'SELECT name, ending_stop_reason FROM agents WHERE parent_instance IS NULL ORDER BY name',
      )
      .all()
      .map(({ name, ending_stop_reason: reason }) => [name, reason]);
  } finally {
    database.close();
  }
}

/**
 * Starts a news feed and stops it with SIGTERM when its output matches `pattern`; returns its data folder. Starts
 * another news feed if the first completes before the signal takes effect, which can happen on a busy machine.
 */
async function stopAfter(pattern: RegExp): Promise<string> {
  for (;;) {
    const dataDir = tempFolder();
    const program = spawnProgram('main.ts', ARGS, { dataDir });
    await program.printed(pattern);
    program.child.kill('SIGTERM');
    const { code, stderr } = await program.ended;
    expect(stderr).toBe('');
    if (isDeepStrictEqual(runsOf(dataDir), FINISHED)) continue;
    // With --exit, status 0 means that every run has ended with ok.
    expect(code).toBe(1);
    return dataDir;
  }
}

const FINISHED = [
  ['newsroom', 'success'],
  ['reader', 'success'],
  ['reader', 'success'],
];

it.each([1, 2])(
  'the next start completes a news feed that SIGTERM stopped after %i additional runs, and starts no duplicate runs (SYS-5, AG-5)',
  async (count) => {
    const dataDir = await stopAfter(new RegExp(`(concurrent with the run below[^]*){${count}}`));
    const second = await run('main.ts', ARGS, { dataDir });
    expect(second).toMatchObject({ code: 0, stderr: '' });
    for (const text of CURATED) expect(second.stdout).toContain(text);
    expect(runsOf(dataDir)).toEqual(FINISHED);
  },
);

it.each([1, 2])(
  'a start reuses the %i additional runs of an earlier start that stopped before its job, and delivers each item once (SYS-5, AG-5)',
  async (count) => {
    const dataDir = tempFolder();
    const example = loadExample('news-feed');
    const session = await openSession(
      { WRIT_LOG_LEVEL: 'silent' },
      { example, script: undefined, dataDir, freePorts: true },
    );
    const never = () => {
      throw new Error('The test does not expect a question.');
    };
    let begun = 0;
    const stopped = session.runJob(readHuman('approve', never), {
      onStart: never,
      onBefore: () => {
        begun += 1;
        if (begun === count) throw new Error('Stopped before the job.');
      },
      onEvent: () => undefined,
      onQuestion: () => undefined,
      onRefusedAnswer: () => undefined,
    });
    await expect(stopped).rejects.toThrow('Stopped before the job.');
    await session.close();
    expect(runsOf(dataDir)).toEqual(Array(count).fill(['reader', null]));

    const next = await run('main.ts', ARGS, { dataDir });
    expect(next).toMatchObject({ code: 0, stderr: '' });
    for (const text of CURATED) expect(next.stdout).toContain(text);
    expect(runsOf(dataDir)).toEqual(FINISHED);
    // Each of the three items is summarized once, and curated once for each of the two readers.
    expect(readRequestLog(join(dataDir, 'simulator-requests.jsonl'))).toHaveLength(9);
  },
);
