import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import {
  AgentActivity,
  type LiveProgress,
  type RunEvent,
  RunStatus,
} from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { approveEdited } from '../approve-edited.ts';

const example = loadExample('refund-desk');
let test: TestPlatform;

beforeAll(async () => {
  // The agents of the refund desk, with streaming of unreviewed text enabled.
  const agents = readFileSync(join(example.folder, 'agents.yaml'), 'utf8');
  const kind = '    kind: json-action\n';
  const streaming = agents.replaceAll(kind, `${kind}    unreviewed_deltas: true\n`);
  test = await startTestPlatform({ files: { WRIT_AGENTS_FILE: streaming } });
});
afterAll(() => test.close());

/** Starts and watches a run with an escalated call, and approves the call. */
async function runEscalated(): Promise<{ events: RunEvent[]; runId: string }> {
  const events: RunEvent[] = [];
  let runId = '';
  const start = {
    requestId: newId('req'),
    agent: example.agent,
    goal: example.goal,
    model: 'sim-escalate-1200',
  };
  for await (const answer of test.client.runs.runAgent({ start, progress: true })) {
    const { event } = answer;
    if (event === undefined) continue;
    runId = answer.runId;
    events.push(event);
    if (event.entry.case !== 'hook') continue;
    const { type, approvalId } = event.entry.value;
    if (type !== HookEventType.APPROVAL_REQUESTED) continue;
    await approveEdited(test, approvalId, { amount_usd: 800 });
  }
  return { events, runId };
}

const progressOf = (events: readonly RunEvent[]): LiveProgress[] =>
  events.flatMap(({ entry }) => (entry.case === 'progress' ? [entry.value] : []));

it('streams progress and model text without changing the recorded timeline (SUP-1, HK-1, SYS-1)', async () => {
  const { events, runId } = await runEscalated();
  const recorded = events.filter(({ entry }) => entry.case !== 'progress');
  expect(recorded.map(({ sequence }) => Number(sequence))).toEqual(recorded.map((_, at) => at + 1));
  const plain: RunEvent[] = [];
  for await (const { event } of test.client.runs.watchRun({ runId })) if (event) plain.push(event);
  expect(recorded).toEqual(plain);

  const result = plain.at(-1)?.entry;
  if (result?.case !== 'result') throw new Error('The run has no result.');
  expect(result.value).toMatchObject({ status: RunStatus.OK, stopReason: 'success' });

  const progress = progressOf(events);
  expect(events.filter(({ sequence }) => sequence === 0n)).toHaveLength(progress.length);
  const { RUNNING, WAITING_FOR_TOOL, SUSPENDED } = AgentActivity;
  const activities = progress.map(({ activity }) => activity);
  expect(activities).toEqual(expect.arrayContaining([RUNNING, WAITING_FOR_TOOL, SUSPENDED]));

  // Text from before the watch may be missing; all text after the decision is required.
  const texts = new Map<string, { text: string; pieces: number }>();
  for (const { callId, textDelta, textOffset, unreviewed, attempt, missed } of progress) {
    expect(missed).toBe(0);
    if (textDelta === '') continue;
    expect({ unreviewed, attempt }).toEqual({ unreviewed: true, attempt: 1 });
    const { text, pieces } = texts.get(callId) ?? { text: '', pieces: 0 };
    // Each text arrives once and in order, although the agent replays its journal.
    if (pieces > 0) expect(textOffset).toBe(Buffer.byteLength(text));
    texts.set(callId, { text: text + textDelta, pieces: pieces + 1 });
  }
  const last = [...texts.values()].at(-1);
  expect(last?.pieces).toBeGreaterThan(1);
  expect(JSON.parse(last?.text ?? '')).toEqual({ kind: 'final', answer: result.value.answer });

  const spans = JSON.stringify(test.spans.spans());
  const pieces = progress.filter(({ textDelta }) => textDelta.length > 12);
  const traced = pieces.filter(({ textDelta }) =>
    spans.includes(JSON.stringify(textDelta).slice(1, -1)),
  );
  expect(traced).toEqual([]);
});
