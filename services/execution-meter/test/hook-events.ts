import { fromBinary } from '@bufbuild/protobuf';
import type { BusMessage } from '@writ/bus';
import {
  type HookEvent as HookEventMessage,
  HookEventSchema,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';

/** A hook event received from the bus. */
export interface HookEvent {
  readonly subject: string;
  readonly name: string;
  readonly event: HookEventMessage;
}

/** Decodes a hook event. */
export function decodeHook({ subject, payload }: BusMessage): HookEvent {
  const name = subject.split('.').at(-1) ?? '';
  return { subject, name, event: fromBinary(HookEventSchema, payload) };
}
