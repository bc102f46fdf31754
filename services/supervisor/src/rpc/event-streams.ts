import type { Message } from '@bufbuild/protobuf';
import {
  ApprovalService,
  type WatchApprovalsResponse,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import {
  RunService,
  type WatchRunResponse,
  type WatchRunsResponse,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import type { EventStream } from '@writ/rpc/edge';

/** The watches that the public listener also serves as server-sent events and JSON lines (SYS-2). */
export const EVENT_STREAMS: readonly EventStream[] = [
  {
    method: RunService.method.watchRun,
    path: '/v1/runs/{run_id}/events',
    resumeField: 'after_sequence',
    isHeartbeat: (response) => entryOf(response)?.case === 'heartbeat',
    idOf(response) {
      const { event } = response as WatchRunResponse;
      // Live progress and heartbeats are not part of the timeline.
      const isStored = !['progress', 'heartbeat'].includes(event?.entry.case ?? 'progress');
      return isStored ? String(event?.sequence) : undefined;
    },
  },
  {
    method: RunService.method.watchRuns,
    path: '/v1/runs/events',
    isHeartbeat: (response) => (response as WatchRunsResponse).heartbeat,
    // A client lists the runs again after the start of each watch, so it needs no position to resume from.
    idOf: () => undefined,
  },
  {
    method: ApprovalService.method.watchApprovals,
    path: '/v1/approvals/events',
    isHeartbeat: (response) => (response as WatchApprovalsResponse).heartbeat,
    // A watch begins with all pending approvals, so it needs no position to resume from.
    idOf: () => undefined,
  },
];

function entryOf(response: Message) {
  return (response as WatchRunResponse).event?.entry;
}
