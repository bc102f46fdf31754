import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CarriedEventSchema } from '@writ/contracts/writ/timeline/v1/carried_event_pb';
import type { CarriedEvent } from '../domain/agent/carried-event.ts';

/** Converts the events of an agent to messages. */
export function eventMessages(
  events: readonly CarriedEvent[],
): MessageInitShape<typeof CarriedEventSchema>[] {
  return events.map(({ event, mac }) => ({ event: bytesOf(event), mac: bytesOf(mac) }));
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(base64, 'base64'));
}
