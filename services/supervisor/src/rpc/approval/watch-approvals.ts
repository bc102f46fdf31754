import type { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { type ApprovalRow, approvalsTopic } from '../../store/approval/approvals.ts';
import { openOrClosedSince } from '../../store/approval/list-approvals.ts';
import { ChangeAlarm } from '../../store/change/change-alarm.ts';
import { approvalMessage, approverOf } from '../../wire/approval.ts';

/** How far back each look goes: a commit may become visible after one that was stamped later. */
const OVERLAP_MS = 5_000;

/**
 * WatchApprovals: the pending approvals of a tenant, then each one that opens or closes. Read from
 * the rows each time: a change is announced in this process and found by a slow poll otherwise.
 */
export function watchApprovals(
  context: SupervisorContext,
): Handler<typeof ApprovalService.method.watchApprovals> {
  return async function* ({ runId }, call) {
    const person = requirePerson(call);
    const { store, config, clock } = context;
    const changed = new ChangeAlarm(call.signal);
    const unsubscribe = store.changes.subscribe(approvalsTopic(person.tenant), () =>
      changed.ring(),
    );
    try {
      const told = new Map<string, ApprovalRow['state']>();
      const startedAt = clock.now();
      let since = startedAt;
      while (true) {
        call.signal.throwIfAborted();
        const lookedAt = clock.now();
        const rows = await openOrClosedSince(store.db, person.tenant, runId, since);
        for (const row of rows) {
          if (told.get(row.approval_id) === row.state) continue;
          told.set(row.approval_id, row.state);
          yield { approval: approvalMessage(row, context.policy, approverOf(person)) };
        }
        forget(told, rows);
        since = new Date(Math.max(startedAt.getTime(), lookedAt.getTime() - OVERLAP_MS));
        await changed.wait(config.watchPollMs);
      }
    } finally {
      unsubscribe();
      changed.close();
    }
  };
}

/** What is no longer among the rows is closed for longer than any look goes back. */
function forget(told: Map<string, ApprovalRow['state']>, rows: readonly ApprovalRow[]): void {
  const present = new Set(rows.map((row) => row.approval_id));
  for (const id of told.keys()) if (!present.has(id)) told.delete(id);
}
