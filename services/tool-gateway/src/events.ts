import { create, toBinary } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { afterCommit, appendOutbox } from '@writ/store';
import { ATTR_ERROR_TYPE, type Telemetry, trace, traceparentOf } from '@writ/telemetry';
import type { CallRow } from './store/calls.ts';
import type { GatewayTransaction } from './store/gateway-store.ts';

/** Hook events of the gateway; each is written in the transaction of the change that it reports (HK-1, HK-2). */
export interface GatewayEvents {
  /** Emits TOOL_START after the intent of a call was recorded. */
  toolStarted(trx: GatewayTransaction, call: CallRow, at: Date): Promise<void>;
  /** Emits TOOL_END after an outcome or a refusal was recorded. */
  toolEnded(trx: GatewayTransaction, call: CallRow, at: Date): Promise<void>;
}

/** Creates the gateway's events. */
export function createGatewayEvents(telemetry: Telemetry): GatewayEvents {
  const emit = async (
    trx: GatewayTransaction,
    name: 'TOOL_START' | 'TOOL_END',
    call: CallRow,
    at: Date,
  ): Promise<void> => {
    const { tenant, run_id: runId, agent_instance: instance, call_id: callId } = call;
    const status = call.stop_reason === '' ? 'ok' : call.stop_reason;
    const traceparent = traceparentOf() ?? call.traceparent;
    const eventId = derivedId('evt', runId, instance, callId, name);
    const event = create(HookEventSchema, {
      eventId,
      type: HookEventType[name],
      emitter: 'tool-gateway',
      eventTime: timestampFromDate(at),
      tenant,
      runId,
      sessionId: call.session_id,
      agent: { name: call.agent_name, instance },
      step: call.step,
      callId,
      traceparent,
      toolName: call.tool,
      status,
      argsSha256: call.args_sha256,
      ...(call.duration_ms === null ? {} : { duration: durationFromMs(call.duration_ms) }),
    });
    await appendOutbox(
      trx,
      {
        eventId,
        subject: hookSubject({ tenant, runId, agent: instance, event: name }),
        payload: toBinary(HookEventSchema, event),
        headers: traceparent === '' ? {} : { traceparent },
      },
      at,
    );
    const fields = {
      tenant,
      run_id: runId,
      agent: instance,
      call_id: callId,
      tool: call.tool,
      status,
      event_id: eventId,
    };
    afterCommit(trx, () => telemetry.log.info(fields, name));
  };
  return {
    toolStarted: (trx, call, at) => emit(trx, 'TOOL_START', call, at),
    toolEnded: (trx, call, at) => {
      const status = call.stop_reason === '' ? 'ok' : call.stop_reason;
      const labels = { 'writ.tool': call.tool, 'writ.status': status };
      const { metrics } = telemetry;
      const { duration_ms: durationMs, tenant } = call;
      afterCommit(trx, () => {
        metrics.count('toolCalls', { 'writ.tenant': tenant, ...labels });
        if (durationMs !== null) metrics.record('toolSeconds', durationMs / 1_000, labels);
      });
      if (status !== 'ok') trace.getActiveSpan()?.setAttribute(ATTR_ERROR_TYPE, status);
      return emit(trx, 'TOOL_END', call, at);
    },
  };
}
