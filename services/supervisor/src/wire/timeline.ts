import { create, toBinary } from '@bufbuild/protobuf';
import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type RunEvent, RunEventSchema, RunResultSchema } from '@writ/contracts/writ/run/v1/run_pb';
import type { AgentRef } from '@writ/kernel';
import type { RunResult } from '../domain/result/run-result.ts';
import { resultMessage } from './result.ts';

/** A timeline entry as it is stored: without sequence and time, which are columns. */
export function encodeEntry(entry: RunEvent['entry'], agent: AgentRef | undefined): Uint8Array {
  return toBinary(RunEventSchema, create(RunEventSchema, { entry, ...(agent && { agent }) }));
}

/** The timeline entry that ends a run's watch. */
export function encodeResult(result: RunResult, root: AgentRef): Uint8Array {
  const value = create(RunResultSchema, resultMessage(result));
  return encodeEntry({ case: 'result', value }, root);
}

/** The timeline entry of a hook event. */
export function hookEntry(event: HookEvent): Uint8Array {
  return encodeEntry({ case: 'hook', value: event }, event.agent);
}
