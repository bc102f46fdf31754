import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readTimeline } from '../src/store/run/read-timeline.ts';
import { recordedEvents } from '../src/store/run/recorded-events.ts';
import { insertRun, saveRun } from '../src/store/run/runs.ts';
import {
  appendTimeline,
  findSequence,
  lastSequence,
  lookUpEvents,
} from '../src/store/run/timeline.ts';
import { openSupervisorStore, type SupervisorStore } from '../src/store/supervisor-store.ts';
import { runRow } from './run-row.ts';

const AT = new Date('2026-01-01T00:00:00Z');
const KEYS = [
  { tenant: 'acme', runId: 'run-a' },
  { tenant: 'acme', runId: 'run-b' },
] as const;

const MAX_ID = 12;
const IDS = Array.from({ length: MAX_ID + 1 }, (_, id) => `event-${id}`);

/** One transaction: which events it appends, and whether it fails afterwards. */
const transaction = fc.record({
  events: fc.array(fc.record({ run: fc.nat(1), id: fc.nat(MAX_ID) }), { maxLength: 6 }),
  fails: fc.boolean(),
  ends: fc.boolean(),
});

async function openStore(): Promise<SupervisorStore> {
  const store = await openSupervisorStore({ dialect: 'sqlite', file: ':memory:' }, () => undefined);
  onTestFinished(() => store.close());
  await store.transaction(async (trx) => {
    for (const { tenant, runId } of KEYS) await insertRun(trx, runRow(tenant, runId));
  });
  return store;
}

describe('the timeline of a run', () => {
  it('has each event once, in order and without gaps, after repeats and rollbacks (HK-1)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(transaction, { maxLength: 12 }), async (transactions) => {
        const store = await openStore();
        const model: string[][] = [[], []];
        for (const { events, fails, ends } of transactions) {
          const draft = model.map((ids) => [...ids]);
          const work = store.transaction(async (trx) => {
            for (const { run, id } of events) {
              const ids = draft[run] ?? [];
              const key = KEYS[run] ?? KEYS[0];
              const eventId = `event-${id}`;
              if (!ids.includes(eventId)) ids.push(eventId);
              const entry = new TextEncoder().encode(eventId);
              const sequence = await appendTimeline(trx, { ...key, eventId, entry }, AT);
              expect(sequence).toBe(ids.indexOf(eventId) + 1);
            }
            // Late events of an ended run are recorded like other events.
            if (ends) await saveRun(trx, KEYS[0], { ended_at: AT });
            if (fails) throw new Error('undone');
          });
          if (fails) await expect(work).rejects.toThrow('undone');
          else {
            await work;
            model.splice(0, 2, ...draft);
          }
        }
        for (const [index, key] of KEYS.entries()) {
          const rows = await readTimeline(store.db, key, 0, 100);
          expect(rows.map(({ entry }) => new TextDecoder().decode(entry))).toEqual(model[index]);
          expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, place) => place + 1));
          expect(await lastSequence(store.db, key)).toBe(rows.length);
        }
        const events = KEYS.flatMap((key) => IDS.map((eventId) => ({ ...key, eventId })));
        const isRecorded = await recordedEvents(store.db, events);
        const recorded = model.map((_, run) =>
          IDS.filter((eventId) => isRecorded({ ...(KEYS[run] ?? KEYS[0]), eventId })),
        );
        expect(recorded).toEqual(model.map((ids) => IDS.filter((id) => ids.includes(id))));
      }),
      { numRuns: 60 },
    );
  });

  it('looks up more events than a query may have parameters (HK-1, SYS-6)', async () => {
    const store = await openStore();
    const [key] = KEYS;
    const ids = Array.from({ length: 70_000 }, (_, id) => `event-${id}`);
    await store.transaction(async (trx) => {
      await lookUpEvents(trx, key, ids);
      expect(await findSequence(trx, { ...key, eventId: 'event-69999' })).toBeUndefined();
    });
  });
});
