import type { SupervisorContext } from '../../context.ts';
import {
  type ApprovalRow,
  approvalsTopic,
  openOrClosedSince,
} from '../../store/approval/approvals.ts';
import { ChangeAlarm, watchIntervalMs } from '../../store/change/change-alarm.ts';

/** Overlap of consecutive reads, ms, because a commit may become visible after a commit with a later timestamp. */
const OVERLAP_MS = 5_000;

/**
 * Yields the pending approvals of a tenant, or of one of its runs, then each approval that opens or closes. Reads rows
 * after each change notification, and at an interval because a notification may be lost. Yields a heartbeat at once if no
 * approval is pending, and after `watchHeartbeatMs` without an approval, provided that the rows can be read (SYS-4).
 */
export async function* watchApprovals(
  { store, config, clock }: SupervisorContext,
  { tenant, runId }: { readonly tenant: string; readonly runId: string },
  signal: AbortSignal,
): AsyncGenerator<ApprovalRow | 'heartbeat'> {
  const changed = new ChangeAlarm(signal);
  changed.on(store.changes, approvalsTopic(tenant));
  try {
    const sent = new Map<string, ApprovalRow['state']>();
    const startedAt = clock.now();
    let since = earlier(startedAt);
    let isFirst = true;
    let sentAt = Number.NEGATIVE_INFINITY;
    while (true) {
      signal.throwIfAborted();
      const readAt = clock.now();
      const rows = await openOrClosedSince(store.db, tenant, runId, since);
      for (const row of rows) {
        if (sent.get(row.approval_id) === row.state) continue;
        sent.set(row.approval_id, row.state);
        if (isFirst && wasClosed(row, startedAt)) continue;
        yield row;
        sentAt = performance.now();
      }
      removeClosed(sent, rows);
      since = earlier(readAt);
      isFirst = false;
      if (performance.now() - sentAt >= config.watchHeartbeatMs) {
        yield 'heartbeat';
        sentAt = performance.now();
      }
      const heartbeatInMs = sentAt + config.watchHeartbeatMs - performance.now();
      const pollMs = watchIntervalMs(store.changes, config.watchPollMs);
      await changed.wait(Math.max(1, Math.min(pollMs, heartbeatInMs)));
    }
  } finally {
    changed.close();
  }
}

function earlier(at: Date): Date {
  return new Date(at.getTime() - OVERLAP_MS);
}

function wasClosed({ decided_at }: ApprovalRow, at: Date): boolean {
  return decided_at !== null && decided_at < at;
}

/**
 * Removes from `sent` the approvals that the last read did not return; they closed before the period that reads cover,
 * so later reads do not return them either.
 */
function removeClosed(sent: Map<string, ApprovalRow['state']>, rows: readonly ApprovalRow[]): void {
  const present = new Set(rows.map((row) => row.approval_id));
  for (const id of sent.keys()) if (!present.has(id)) sent.delete(id);
}
