import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import type { ListRunsResponse } from '@writ/contracts/writ/run/v1/run_service_pb';

/**
 * Returns the pages of a list, newest run first, with changes applied. A listed run is replaced, or removed if the
 * filter no longer accepts it. Another run is inserted first if the filter accepts it and no listed run is newer.
 * Unchanged pages keep their identity.
 */
export function changedPages(
  pages: readonly ListRunsResponse[],
  changes: readonly Run[],
  accepts: (run: Run) => boolean,
): ListRunsResponse[] {
  const changed = new Map(changes.map((run) => [run.runId, run]));
  const newest = timeOf(pages[0]?.runs[0]);
  const next = pages.map((page) => {
    if (!page.runs.some(({ runId }) => changed.has(runId))) return page;
    const runs = page.runs.flatMap((run) => {
      const current = changed.get(run.runId) ?? run;
      changed.delete(run.runId);
      return current === run || accepts(current) ? [current] : [];
    });
    return { ...page, runs };
  });
  const [first, ...rest] = next;
  if (first === undefined) return next;
  const added = [...changed.values()]
    .filter((run) => accepts(run) && timeOf(run) >= newest)
    .sort((left, right) => timeOf(right) - timeOf(left));
  return added.length === 0 ? next : [{ ...first, runs: [...added, ...first.runs] }, ...rest];
}

/** The start of a run as Unix time, ms; 0 without a run or a time. */
function timeOf(run: Run | undefined): number {
  const at = run?.createTime;
  return at === undefined ? 0 : Number(at.seconds) * 1_000 + at.nanos / 1_000_000;
}
