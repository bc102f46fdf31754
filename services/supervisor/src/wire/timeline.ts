import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type HookEvent, HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { DecisionSchema } from '@writ/contracts/writ/review/v1/decision_pb';
import { type RunEvent, RunEventSchema, RunResultSchema } from '@writ/contracts/writ/run/v1/run_pb';
import type { AgentRef } from '@writ/kernel';
import type { HumanAnswer, RunResult } from '../domain/result/run-result.ts';
import type { DecisionRow } from '../store/review/decisions.ts';
import { decisionMessage } from './decision.ts';
import { resultMessage } from './result.ts';

/** Encodes the timeline entry of a decision, without its writ. */
export function encodeDecision(
  row: DecisionRow,
  agent: AgentRef,
  human: HumanAnswer | undefined,
): Uint8Array {
  const value = create(DecisionSchema, decisionMessage(row, { human }));
  return encodeEntry({ case: 'decision', value }, agent);
}

/** Encodes the timeline entry that ends a watch: the result of the run. */
export function encodeResult(result: RunResult, root: AgentRef): Uint8Array {
  const value = create(RunResultSchema, resultMessage(result));
  return encodeEntry({ case: 'result', value }, root);
}

/**
 * Decodes a hook event.
 * @throws Error for bytes that are not a hook event
 */
export function decodeHook(bytes: Uint8Array): HookEvent {
  return fromBinary(HookEventSchema, bytes);
}

/** Decodes the hook event of a timeline entry; undefined for an entry of another kind. */
export function hookOfEntry(bytes: Uint8Array): HookEvent | undefined {
  const { entry } = fromBinary(RunEventSchema, bytes);
  return entry.case === 'hook' ? entry.value : undefined;
}

/** Encodes a hook event as its emitter does. */
export function hookPayload(event: HookEvent): Uint8Array {
  return toBinary(HookEventSchema, event);
}

/** Encodes the timeline entry of a hook event. */
export function encodeHook(event: HookEvent): Uint8Array {
  return encodeEntry({ case: 'hook', value: event }, event.agent);
}

/** An entry without sequence and time, which are columns of the timeline table. */
function encodeEntry(entry: RunEvent['entry'], agent: AgentRef | undefined): Uint8Array {
  return toBinary(RunEventSchema, create(RunEventSchema, { entry, ...(agent && { agent }) }));
}
