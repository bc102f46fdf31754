import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type LiveProgress,
  LiveProgressSchema,
  type RunEvent,
  RunEventSchema,
} from '@writ/contracts/writ/run/v1/run_pb';
import type { AgentRef } from '@writ/kernel';

/** Decodes a progress message of a worker. */
export function readProgress(payload: Uint8Array): LiveProgress {
  return fromBinary(LiveProgressSchema, payload);
}

/** The event that carries live progress to a watcher. */
export function progressEvent(
  agent: AgentRef,
  fields: Partial<Omit<LiveProgress, '$typeName' | '$unknown' | 'agent'>>,
): RunEvent {
  const value = create(LiveProgressSchema, { agent, ...fields });
  return create(RunEventSchema, { entry: { case: 'progress', value }, agent });
}
