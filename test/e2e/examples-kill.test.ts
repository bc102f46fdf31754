import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sentReports } from '@writ/example-nightly-flow/reports';
import { readShelf } from '@writ/example-research-team/shelf';
import { afterEach, describe, expect, it } from 'vitest';
import {
  killAfter,
  PlatformProcess,
  recordedAnswers,
  repeatedModelCalls,
} from './platform-process.ts';

let dataDir = '';
let running: PlatformProcess | undefined;

afterEach(async () => {
  await running?.kill();
  if (dataDir !== '') rmSync(dataDir, { recursive: true, force: true });
});

/** Kills an example once it has printed a text; returns the output of the restarted process. */
async function killAndRestart(example: string, text: string): Promise<string> {
  dataDir = await killAfter(text, '--example', example);
  const recorded = recordedAnswers(dataDir);
  running = new PlatformProcess(dataDir, '--example', example);
  const second = running;
  expect(await second.exited, second.output).toBe(0);
  expect(second.output).toContain('left unfinished');
  expect(repeatedModelCalls(dataDir, recorded)).toEqual([]);
  return second.output;
}

/** The slot states of all agents. */
function slotStates(): unknown[] {
  const slots = new DatabaseSync(join(dataDir, 'spawn-budget.db'), { readOnly: true });
  try {
    return slots
      .prepare('SELECT state FROM members')
      .all()
      .map(({ state }) => state);
  } finally {
    slots.close();
  }
}

describe('an example that is killed once', () => {
  it('completes a research team with the answer of an undisturbed run, one published brief and no held slot (AG-3, AG-4, RT-1, SB-3)', async () => {
    const output = await killAndRestart('research-team', 'handoff to person-at-desk');
    expect(output).toContain('is published as number 1, written for visitors of a mill');
    expect(readShelf(dataDir)).toHaveLength(1);
    expect(slotStates()).toEqual(Array(5).fill('released'));
  }, 180_000);

  it('delivers every item to every reader once (AG-5, RT-3)', async () => {
    const output = await killAndRestart('news-feed', ' 1  model');
    for (const line of [
      'A storm comes on Sunday night; boats should be in by six.',
      "Sunday night is stormy, but Monday's ferry is not affected so far.",
      'You start at noon on Sunday, one of forty boats.',
    ]) {
      expect(output).toContain(line);
    }
  }, 180_000);

  it('sends one nightly report (AG-1, RT-1, TG-5)', async () => {
    const output = await killAndRestart('nightly-flow', 'read_figures');
    expect(output).toContain('Sent as number 1: Four orders brought 1175 USD.');
    expect(sentReports(dataDir)).toHaveLength(1);
  }, 180_000);
});
