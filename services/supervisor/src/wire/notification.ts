import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  NotificationState,
  type SentNotificationSchema,
} from '@writ/contracts/writ/control/v1/control_service_pb';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Notification, Notified } from '../domain/notify/notification.ts';
import type { NotificationRow } from '../store/notifications.ts';
import { levelName } from './budget.ts';

const TYPES: Readonly<Partial<Record<HookEventType, Notified>>> = {
  [HookEventType.APPROVAL_REQUESTED]: 'approval_requested',
  [HookEventType.HALTED]: 'halted',
  [HookEventType.BUDGET_THRESHOLD]: 'budget_threshold',
};

/** Converts a hook event to a notification; undefined for an event of which no endpoint is notified. */
export function notificationOf(event: HookEvent, now: Date): Notification | undefined {
  const type = TYPES[event.type];
  if (type === undefined) return undefined;
  const { tenant, haltId, approvalId, toolName, dimension, thresholdPercent, agent } = event;
  const fields = {
    tenant,
    run_id: event.runId,
    session_id: event.sessionId,
    agent: agent?.name ?? '',
    agent_instance: agent?.instance ?? '',
    approval_id: approvalId,
    tool: toolName,
    halt_id: haltId,
    dimension,
    level: type === 'budget_threshold' ? (levelName(event.budgetLevel) ?? 'agent') : '',
    percent: thresholdPercent,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== '' && value !== 0);
  const at = event.eventTime === undefined ? now : timestampDate(event.eventTime);
  return { type, timestamp: at.toISOString(), data: Object.fromEntries(given) };
}

/** Returns the id of the cause of a notification: the id of the halt, or of the event. */
export function causeOf({ type, haltId, eventId }: HookEvent): string {
  return type === HookEventType.HALTED ? haltId : eventId;
}

const STATES = {
  open: NotificationState.OPEN,
  delivered: NotificationState.DELIVERED,
  failed: NotificationState.FAILED,
} as const;

/** Converts the row of a notification. */
export function sentNotification({
  endpoint,
  notification_id: notificationId,
  state,
  attempts,
  problem,
}: NotificationRow): MessageInitShape<typeof SentNotificationSchema> {
  return { endpoint, notificationId, state: STATES[state], attempts, problem };
}
