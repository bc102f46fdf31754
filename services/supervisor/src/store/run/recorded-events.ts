import type { RunKey } from '@writ/kernel';
import type { SupervisorReader } from '../supervisor-store.ts';

/** An event of a run, by its id on the timeline. */
export interface EventKey extends RunKey {
  readonly eventId: string;
}

/** Looks up events of several runs in one query; returns which of them are on the timelines of their runs. */
export async function recordedEvents(
  db: SupervisorReader,
  events: readonly EventKey[],
): Promise<(event: EventKey) => boolean> {
  if (events.length === 0) return () => false;
  const among = (of: (event: EventKey) => string) => [...new Set(events.map(of))];
  const rows = await db
    .selectFrom('timeline')
    .select(['tenant', 'run_id as runId', 'event_id as eventId'])
    .where(
      'tenant',
      'in',
      among(({ tenant }) => tenant),
    )
    .where(
      'run_id',
      'in',
      among(({ runId }) => runId),
    )
    .where(
      'event_id',
      'in',
      among(({ eventId }) => eventId),
    )
    .execute();
  const found = new Set(rows.map(nameOf));
  return (event) => found.has(nameOf(event));
}

function nameOf({ tenant, runId, eventId }: EventKey): string {
  return `${tenant}/${runId}/${eventId}`;
}
