import { fromBinary } from '@bufbuild/protobuf';
import { type Bus, type BusMessage, HOOK_SUBJECTS, type Subscription } from '@writ/bus';
import { HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { toHookContext } from './hook-context.ts';
import type { HookManager } from './hook-manager.ts';
import { createRecentIds } from './recent-ids.ts';

/** Which events of the bus a manager is given, and how surely. */
export interface FollowBusOptions {
  /** NATS subject; default every hook event that the credentials allow. */
  readonly subject?: string;
  /**
   * Name of a durable consumer: every event comes at least once, also those of the time when nobody
   * followed. Without it events are seen as they pass.
   */
  readonly durable?: string;
  /** Told how many events a follower without `durable` missed because its callbacks were too slow. */
  readonly onMissed?: (count: number) => void;
}

/** Gives a manager the hook events of a bus, a repeat only once within the last 4 096 (HK-2, HK-3). */
export async function followBus(
  bus: Bus,
  manager: HookManager,
  options: FollowBusOptions = {},
): Promise<Subscription> {
  const subject = options.subject ?? HOOK_SUBJECTS;
  const recent = createRecentIds(4_096);
  const take = async ({ eventId, payload }: BusMessage): Promise<void> => {
    if (recent.has(eventId)) return;
    await manager.dispatch(toHookContext(fromBinary(HookEventSchema, payload)));
    recent.add(eventId);
  };
  if (options.durable !== undefined)
    return bus.subscribe({ subject, durable: options.durable, handler: take });
  return bus.subscribeLive({
    subject,
    handler: async (message, missed) => {
      if (missed > 0) options.onMissed?.(missed);
      await take(message);
    },
  });
}
