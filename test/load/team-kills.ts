import { strict as assert } from 'node:assert';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { createWritClient, type WritClient } from '@writ/client';
import { ResolveSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { readShelf } from '@writ/example-research-team/shelf';
import { derivedId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { createSayings } from '@writ/platform/console';
import { askedAgain, type RecordedAnswer, recordedAnswers } from '../e2e/platform-process.ts';
import { COMPILE_CACHE } from './program.ts';
import { seeded } from './random.ts';

const MAIN = resolve(import.meta.dirname, '../../platform/src/main.ts');
const PORTS = [
  'EDGE',
  'SUPERVISOR',
  'SPAWN_BUDGET',
  'EXECUTION_METER',
  'TOOL_GATEWAY',
  'AGENT_WORKER',
];
const ANSWER = /is published as number 1, written for visitors of a mill/;

/** How the proof is made. Times are milliseconds. */
export interface TeamKillOptions {
  readonly runs: number;
  /** Runs that are under way at the same time. */
  readonly batch: number;
  readonly seed: number;
  /** Between a start that is up and its end by kill -9: anything from here to there. */
  readonly killAfterMs: readonly [number, number];
}

/**
 * Runs the research team many times while the whole platform is killed at random moments and started
 * again. All runs end with the answer of an undisturbed one; no recorded model answer is asked for
 * again, no brief published twice, no slot and no reservation left.
 */
export async function teamKills({ runs, batch, seed, killAfterMs }: TeamKillOptions) {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-team-'));
  const random = seeded(seed);
  const ended = new Map<string, Run>();
  const recorded = new Map<string, RecordedAnswer>();
  let kills = 0;
  try {
    while (ended.size < runs) {
      const platform = await start(dataDir);
      const work = new AbortController();
      const driven = drive(platform.client, dataDir, { runs, batch, ended }, work.signal);
      const [from, to] = killAfterMs;
      const isDone = await Promise.race([
        driven.then(() => true),
        delay(from + random() * (to - from), false),
      ]);
      work.abort();
      if (!isDone) kills += 1;
      await platform.kill();
      await driven.catch(() => undefined);
      for (const answer of recordedAnswers(dataDir)) recorded.set(answer.thisAttempt, answer);
      assert.deepEqual(
        askedAgain(dataDir, [...recorded.values()]),
        [],
        'model answers asked again',
      );
    }
    for (const { runId, result } of ended.values()) {
      assert.match(result?.answer ?? '', ANSWER, runId);
      const bad = result?.trace.filter(({ ok }) => !ok) ?? [];
      assert.deepEqual(bad, [], `steps of ${runId} that did not go well`);
    }
    const published = readShelf(dataDir).map(({ run_id: id }) => id);
    assert.equal(new Set(published).size, runs, 'runs that published');
    assert.equal(published.length, runs, 'briefs');
    assert.deepEqual(
      rows(dataDir, 'spawn-budget', "SELECT * FROM members WHERE state != 'released'"),
      [],
    );
    assert.deepEqual(
      rows(dataDir, 'execution-meter', 'SELECT * FROM balances WHERE reserved_tokens != 0'),
      [],
    );
    return { runs, kills, model_answers: recorded.size, agents: runs * 5 };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Starts what is missing, answers people's questions, and waits until all have ended. */
async function drive(
  client: WritClient,
  dataDir: string,
  job: { readonly runs: number; readonly batch: number; readonly ended: Map<string, Run> },
  signal: AbortSignal,
): Promise<void> {
  const { goal, agent, signals } = loadExample('research-team');
  let next = 0;
  const lane = async () => {
    while (next < job.runs && !signal.aborted) {
      const number = next;
      next += 1;
      // The same request finds the same run after a restart.
      const requestId = `team-${number}`;
      const { run } = await client.runs.startRun({ requestId, agent, goal });
      const runId = run?.runId ?? '';
      if (job.ended.has(runId)) continue;
      const answer = createSayings(client, signals);
      for await (const { event } of client.runs.watchRun({ runId }, { signal })) {
        if (event === undefined) continue;
        await answer(runId, event);
        const hook = event.entry.case === 'hook' ? event.entry.value : undefined;
        if (hook?.type === HookEventType.APPROVAL_REQUESTED) {
          await resolveCall(client, dataDir, runId, hook.approvalId);
        }
      }
      const seen = await client.runs.getRun({ runId });
      if (seen.run?.result !== undefined) job.ended.set(runId, seen.run);
    }
  };
  await Promise.all(Array.from({ length: job.batch }, lane));
}

/** A person looks whether the brief of a call that nobody knows of is on the shelf. */
async function resolveCall(client: WritClient, dataDir: string, runId: string, approvalId: string) {
  const brief = readShelf(dataDir).find((one) => one.run_id === runId);
  const result = { status: 'ok', number: 1, title: brief?.title ?? '' };
  const found =
    brief === undefined
      ? { outcome: ResolvedOutcome.NOT_DONE }
      : { outcome: ResolvedOutcome.DONE, resultJson: JSON.stringify(result) };
  const value = create(ResolveSchema, found);
  const requestId = derivedId('req', approvalId);
  await client.approvals.decideApproval({
    requestId,
    approvalId,
    answer: { case: 'resolve', value },
  });
}

async function start(dataDir: string): Promise<{ client: WritClient; kill(): Promise<void> }> {
  const child = spawn(process.execPath, [MAIN, '--no-demo', '--example', 'research-team'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      WRIT_DATA: dataDir,
      WRIT_LOG_LEVEL: 'error',
      ...Object.fromEntries(PORTS.map((name) => [`WRIT_${name}_PORT`, '0'])),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const { baseUrl, apiKey } = await doorOf(child);
  return {
    client: createWritClient({ baseUrl, apiKey }),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Where clients come in, as its output says; it may go on printing. */
function doorOf(child: ChildProcess): Promise<{ baseUrl: string; apiKey: string }> {
  return new Promise((found, fail) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const [, baseUrl] = /public +(http:\S+)/.exec(output) ?? [];
      const [, apiKey] = /API key +(\S+)/.exec(output) ?? [];
      if (baseUrl !== undefined && apiKey !== undefined) found({ baseUrl, apiKey });
    });
    child.once('exit', () => fail(new Error(`The platform ended before it was up:\n${output}`)));
  });
}

function rows(dataDir: string, service: string, query: string): unknown[] {
  const database = new DatabaseSync(join(dataDir, `${service}.db`), { readOnly: true });
  try {
    return database.prepare(query).all();
  } finally {
    database.close();
  }
}
