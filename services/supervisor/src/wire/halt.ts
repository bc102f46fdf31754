import { create, fromJson, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type HaltRequest,
  HaltRequestSchema,
  type HaltSchema,
  HaltState as StateMessage,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import {
  type InFlightCall,
  InFlightCallSchema,
  type Scope as ScopeMessage,
  type ScopeSchema,
} from '@writ/contracts/writ/control/v1/freeze_pb';
import {
  type HookEvent,
  HookEventSchema,
  HookEventType,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { canonicalDigest, InvalidRequestError, omitUndefined, type Scope } from '@writ/kernel';
import { type HaltRow, scopeOf } from '../store/halt/halts.ts';

type ScopeKind = NonNullable<MessageInitShape<typeof ScopeSchema>['kind']>;

const STATES: Readonly<Record<HaltRow['state'], StateMessage>> = {
  pending: StateMessage.PENDING,
  in_force: StateMessage.IN_FORCE,
  lifting: StateMessage.IN_FORCE,
  lifted: StateMessage.RESUMED,
};

/** Converts a scope. */
export function scopeMessage({ tenant, runId, instance }: Scope): ScopeKind {
  if (tenant === undefined) return { case: 'everything', value: {} };
  if (runId === undefined) return { case: 'tenant', value: tenant };
  return instance === undefined
    ? { case: 'run', value: { tenant, runId } }
    : { case: 'agent', value: { tenant, runId, agentInstance: instance } };
}

/** Reads a scope; request validation requires one. */
export function scopeFrom(scope: ScopeMessage | undefined): Scope {
  switch (scope?.kind.case) {
    case 'run':
      return { tenant: scope.kind.value.tenant, runId: scope.kind.value.runId };
    case 'agent': {
      const { tenant, runId, agentInstance } = scope.kind.value;
      return { tenant, runId, instance: agentInstance };
    }
    case 'tenant':
      return { tenant: scope.kind.value };
    case 'everything':
      return {};
    default:
      throw new InvalidRequestError('FIELD_REQUIRED', 'scope is required.', { field: 'scope' });
  }
}

/** Digest of a Halt request, so that a reused request_id is detected. */
export function haltDigest(request: HaltRequest): string {
  return canonicalDigest(toJson(HaltRequestSchema, request));
}

/** Converts a halt. */
export function haltMessage(row: HaltRow): MessageInitShape<typeof HaltSchema> {
  return {
    haltId: row.halt_id,
    scope: { kind: scopeMessage(scopeOf(row)) },
    reason: row.reason,
    orderedBy: row.ordered_by,
    createTime: timestampFromDate(row.ordered_at),
    state: STATES[row.state],
    endRuns: row.end_runs,
    inFlight: [...inFlightFrom(row.meter_in_flight), ...inFlightFrom(row.gateway_in_flight)],
    resumedBy: row.resumed_by ?? '',
    ...(row.lifted_at && { resumeTime: timestampFromDate(row.lifted_at) }),
  };
}

/** Returns the event of which endpoints are notified when a halt is in force; it has the scope of the halt. */
export function haltInForceEvent(row: HaltRow, at: Date): HookEvent {
  const { tenant, runId, instance } = scopeOf(row);
  return create(HookEventSchema, {
    type: HookEventType.HALTED,
    emitter: 'supervisor',
    eventTime: timestampFromDate(at),
    haltId: row.halt_id,
    ...omitUndefined({ tenant, runId }),
    ...(instance !== undefined && { agent: { instance } }),
  });
}

/** Encodes calls in flight for a column. */
export function inFlightJson(calls: readonly InFlightCall[]): string {
  return JSON.stringify(calls.map((call) => toJson(InFlightCallSchema, call)));
}

function inFlightFrom(json: string): InFlightCall[] {
  const calls = JSON.parse(json) as Parameters<typeof fromJson>[1][];
  return calls.map((call) => fromJson(InFlightCallSchema, call));
}
