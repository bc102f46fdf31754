import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { SupervisorUnderTest } from './supervisor-under-test.ts';

/** A hook event of tenant `acme`. */
type PublishedHook = Omit<
  MessageInitShape<typeof HookEventSchema>,
  '$typeName' | 'tenant' | 'type'
> & {
  readonly eventId: string;
  readonly runId: string;
  readonly type: keyof typeof HookEventType;
};

/** Publishes a hook event as another service does. */
export async function publishHook(
  { bus }: Pick<SupervisorUnderTest, 'bus'>,
  { type, ...fields }: PublishedHook,
): Promise<void> {
  const { eventId, runId, agent } = fields;
  const event = { ...fields, tenant: 'acme', type: HookEventType[type] };
  const instance = agent?.instance;
  await bus.publish({
    eventId,
    subject: hookSubject({
      tenant: 'acme',
      runId,
      event: type,
      ...(instance !== undefined && { agent: instance }),
    }),
    payload: toBinary(HookEventSchema, create(HookEventSchema, event)),
    headers: {},
  });
}
