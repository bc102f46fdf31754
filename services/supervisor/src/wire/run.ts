import { create, fromBinary, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  HeartbeatSchema,
  type RunEvent,
  RunEventSchema,
  type RunSchema,
  RunState as StateMessage,
} from '@writ/contracts/writ/run/v1/run_pb';
import {
  type StartRunRequest,
  StartRunRequestSchema,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import { canonicalDigest } from '@writ/kernel';
import type { AgentManifest } from '../domain/manifest/agent-manifest.ts';
import { budgetFromJson } from '../domain/manifest/manifest-json.ts';
import type { RunResult } from '../domain/result/run-result.ts';
import type { RunRequest } from '../domain/run/plan-run.ts';
import type { TimelineRow } from '../store/run/read-timeline.ts';
import type { RunRow } from '../store/run/runs.ts';
import type { StoredRunState } from '../store/schema/run.ts';
import { budgetFrom, budgetMessage, spawnBudgetFrom } from './budget.ts';
import { resultMessage } from './result.ts';
import {
  kindMessage,
  priorityFrom,
  priorityMessage,
  retentionFrom,
  retentionMessage,
  rootRefOf,
} from './supervision.ts';

/** Converts a run. Pages of runs omit trace and history, which can be long. */
export function runMessage(
  run: RunRow,
  options: {
    readonly lastSequence: number;
    readonly brief?: boolean;
    readonly waitingDetail?: string | undefined;
  },
): MessageInitShape<typeof RunSchema> {
  return {
    runId: run.run_id,
    sessionId: run.session_id,
    tenant: run.tenant,
    agent: rootRefOf(run),
    kind: kindMessage(run.agent_kind),
    state: StateMessage[run.state],
    goal: run.goal,
    traceId: run.trace_id,
    definitionHash: run.definition_hash,
    createdBy: run.created_by,
    createTime: timestampFromDate(run.created_at),
    ...(run.deadline_at && { deadline: timestampFromDate(run.deadline_at) }),
    ...(run.ended_at && { endTime: timestampFromDate(run.ended_at) }),
    ...(run.purged_at && { purgeTime: timestampFromDate(run.purged_at) }),
    labels: JSON.parse(run.labels) as Record<string, string>,
    ...(run.result !== null && { result: storedResult(run.result, options.brief === true) }),
    lastSequence: BigInt(options.lastSequence),
    waitingDetail: options.waitingDetail ?? '',
    runBudget: budgetMessage(budgetFromJson(run.run_budget)),
    ...(run.session_budget !== null && {
      sessionBudget: budgetMessage(budgetFromJson(run.session_budget)),
    }),
    priority: priorityMessage(run.priority),
    retention: retentionMessage(run.retention),
  };
}

/** Converts the states of a request. */
export function statesFrom(states: readonly StateMessage[]): StoredRunState[] {
  const wanted = new Set<number>(states);
  return Object.entries(StateMessage)
    .filter(([name, value]) => name !== 'UNSPECIFIED' && wanted.has(value))
    .map(([name]) => name as StoredRunState);
}

/** Converts a timeline row. */
export function eventMessage(row: TimelineRow): RunEvent {
  const event = fromBinary(RunEventSchema, row.entry);
  event.sequence = BigInt(row.sequence);
  event.recordTime = timestampFromDate(row.recorded_at);
  return event;
}

/** A heartbeat after the event with `sequence`. */
export function heartbeatMessage(sequence: number): RunEvent {
  const value = create(HeartbeatSchema);
  return create(RunEventSchema, {
    sequence: BigInt(sequence),
    entry: { case: 'heartbeat', value },
  });
}

function storedResult(json: string, brief: boolean) {
  const result = JSON.parse(json) as RunResult;
  return resultMessage(brief ? { ...result, trace: [], history: [] } : result);
}

/** Digest of a StartRun request, so that a reused request_id is detected. */
export function startRunDigest(request: StartRunRequest): string {
  return canonicalDigest(toJson(StartRunRequestSchema, request));
}

/**
 * Reads a StartRun request; the manifest supplies the fields of the spawn budget that the request omits.
 * @throws InvalidRequestError INVALID_BUDGET naming the field
 */
export function runRequestFrom(request: StartRunRequest, manifest: AgentManifest): RunRequest {
  return {
    goal: request.goal,
    dataJson: request.dataJson,
    runBudget: budgetFrom(request.runBudget, 'run_budget'),
    sessionBudget: request.sessionBudget && budgetFrom(request.sessionBudget, 'session_budget'),
    spawnBudget: spawnBudgetFrom(request.spawnBudget, manifest.spawnBudget, 'spawn_budget'),
    priority: priorityFrom(request.priority),
    retention: retentionFrom(request.retention),
    model: request.model,
  };
}
