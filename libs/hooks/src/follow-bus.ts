import { fromBinary } from '@bufbuild/protobuf';
import { type Bus, type BusMessage, HOOK_SUBJECTS, type Subscription } from '@writ/bus';
import { HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { InvalidRequestError, isId } from '@writ/kernel';
import { type HookContext, knownHookContext } from './hook-context.ts';
import type { HookManager } from './hook-manager.ts';

/** Options of {@link followBus}. */
export interface FollowBusOptions {
  /**
   * NATS subject. Default: `writ.hooks.v1.>`, for an in-process bus. On NATS, pass OBSERVED_SUBJECTS with the durable
   * consumer OBSERVER: the credentials of an observer permit no other subject or consumer.
   */
  readonly subject?: string;
  /**
   * Name of a durable consumer: every event is delivered at least once. On NATS this includes events that were
   * published while the program was not running, unless the stream for observers has deleted them (after three days, or
   * when it was full). Without a durable consumer, only live events are delivered.
   */
  readonly durable?: string;
  /** Called with the number of events that slow callbacks missed; used only without `durable`. */
  readonly onMissed?: (count: number) => void;
}

/**
 * Dispatches the hook events of a bus to a manager, dropping redeliveries among the last 4,096 events
 * (HK-2, HK-3). Skips events of types that this version does not support (BD-6). A malformed event is dropped, and
 * reported to the `onError` of the bus as InvalidRequestError MALFORMED_MESSAGE.
 *
 * @example
 * ```ts
 * import { createInProcessBus } from '@writ/bus';
 * import { followBus, HookManager } from '@writ/hooks';
 *
 * const bus = createInProcessBus({ onError: (error) => console.error(error) });
 * const hooks = new HookManager({ onProblem: (problem) => console.error(problem) });
 * hooks.on('RUN_END', ({ run_id, status }) => console.log(run_id, status));
 * const subscription = await followBus(bus, hooks, { durable: 'run-ends' });
 * // later
 * await subscription.unsubscribe();
 * ```
 */
export async function followBus(
  bus: Bus,
  manager: HookManager,
  options: FollowBusOptions = {},
): Promise<Subscription> {
  const subject = options.subject ?? HOOK_SUBJECTS;
  const recent = createRecentIds(4_096);
  const handle = async (message: BusMessage): Promise<void> => {
    const { eventId } = message;
    if (recent.has(eventId)) return;
    const context = contextOf(message);
    if (context !== undefined) await manager.dispatch(context);
    recent.add(eventId);
  };
  if (options.durable !== undefined)
    return bus.subscribe({ subject, durable: options.durable, handler: handle });
  return bus.subscribeLive({
    subject,
    handler: async (message, missed) => {
      if (missed > 0) options.onMissed?.(missed);
      await handle(message);
    },
  });
}

/** @throws InvalidRequestError MALFORMED_MESSAGE */
function contextOf({ eventId, payload }: BusMessage): HookContext | undefined {
  try {
    return knownHookContext(fromBinary(HookEventSchema, payload));
  } catch (cause) {
    const id = isId(eventId) ? eventId : '(invalid id)';
    const message = `Event ${id} is not a valid hook event.`;
    throw new InvalidRequestError('MALFORMED_MESSAGE', message, {}, { cause });
  }
}

/** The most recent ids. */
interface RecentIds {
  has(id: string): boolean;
  add(id: string): void;
}

/** Creates an empty set of the last `capacity` ids. */
function createRecentIds(capacity: number): RecentIds {
  const ids = new Set<string>();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > capacity && oldest !== undefined) ids.delete(oldest);
    },
  };
}
