import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { RunSchema, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { ListRunsResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { expect, it } from 'vitest';
import { changedPages } from './changed-pages.ts';

const run = (second: number, state: RunState = RunState.RUNNING) =>
  create(RunSchema, {
    runId: `run-${second}`,
    state,
    createTime: timestampFromDate(new Date(second * 1_000)),
  });
const pageOf = (...seconds: number[]) =>
  create(ListRunsResponseSchema, { runs: seconds.map((second) => run(second)) });
const PAGES = [pageOf(9, 8), pageOf(7, 6)];
const isRunning = ({ state }: { readonly state: RunState }) => state === RunState.RUNNING;
const idsOf = (pages: ReturnType<typeof changedPages>) =>
  pages.map(({ runs }) => runs.map(({ runId }) => runId));

it('inserts newer runs first, and keeps the identity of unchanged pages (PE-2)', () => {
  const pages = changedPages(PAGES, [run(10), run(11), run(9)], () => true);
  expect(idsOf(pages)).toEqual([
    ['run-11', 'run-10', 'run-9', 'run-8'],
    ['run-7', 'run-6'],
  ]);
  expect(pages[1]).toBe(PAGES[1]);
});

it('replaces a listed run, or removes it when the filter no longer accepts it (PE-2)', () => {
  const ended = run(7, RunState.COMPLETED);
  expect(changedPages(PAGES, [ended], () => true)[1]?.runs[0]).toBe(ended);
  expect(idsOf(changedPages(PAGES, [ended], isRunning))[1]).toEqual(['run-6']);
});

it('does not insert a run that is older than the list or that the filter rejects (PE-2)', () => {
  const changes = [run(3), run(12, RunState.COMPLETED)];
  expect(idsOf(changedPages(PAGES, changes, isRunning))).toEqual(idsOf(PAGES));
});

it('fills an empty list (PE-2)', () => {
  expect(idsOf(changedPages([pageOf()], [run(1)], () => true))).toEqual([['run-1']]);
});
