import { systemClock } from '@writ/kernel';
import {
  initialMigration,
  type OutboxDatabase,
  openStore,
  outboxTable,
  type Store,
} from '@writ/store';
import { createTelemetry, InMemorySpans, type Telemetry, withSpan } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { observeCommits } from './store-metrics.ts';

let spans: InMemorySpans;
let telemetry: Telemetry;
let store: Store<OutboxDatabase>;

beforeEach(async () => {
  spans = new InMemorySpans();
  telemetry = createTelemetry({
    service: 'meter',
    logLevel: 'silent',
    spanProcessors: [spans],
    internalSpans: true,
  });
  store = await openStore<OutboxDatabase>({
    location: { dialect: 'sqlite', file: ':memory:' },
    migrations: initialMigration([outboxTable]),
    service: 'meter',
    observer: observeCommits(telemetry),
  });
});
afterEach(() => store.close());
afterEach(() => void vi.restoreAllMocks());

const write = (id: string) =>
  store.transaction((trx) =>
    trx
      .insertInto('outbox')
      .values({
        event_id: id,
        subject: 's',
        payload: new Uint8Array(),
        headers: '{}',
        created_at: systemClock.now(),
        published_at: null,
      })
      .execute(),
  );

const request = (id: string) => withSpan(telemetry.tracer, id, {}, () => write(id));
const commits = () => spans.spans().filter(({ name }) => name === 'commit');
const named = (name: string) => spans.spans().find((span) => span.name === name);

describe('the span of a commit', () => {
  it('is a child of the first request and links to the others (SYS-1)', async () => {
    // Freezes the clock, because a batch ends after ten milliseconds and one transaction may take longer on a busy
    // machine.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    await Promise.all([request('a'), request('b'), request('c')]);
    expect(commits()).toHaveLength(1);
    const [commit] = commits();
    expect(commit).toMatchObject({
      traceId: named('a')?.traceId,
      parentSpanId: named('a')?.spanId,
      attributes: { 'writ.commit.size': 3 },
    });
    expect(commit?.links).toEqual(
      ['b', 'c'].map((name) => ({ traceId: named(name)?.traceId, spanId: named(name)?.spanId })),
    );
  });

  it('is absent for reads and for work without a request', async () => {
    await withSpan(telemetry.tracer, 'read', {}, () =>
      store.transaction((trx) => trx.selectFrom('outbox').selectAll().execute()),
    );
    await write('background');
    expect(commits()).toEqual([]);
  });

  it('reads no context if neither spans nor metrics are exported', async () => {
    const quiet = createTelemetry({ service: 'meter', logLevel: 'silent' });
    const observed = withSpan(quiet.tracer, 'request', {}, async () =>
      observeCommits(quiet).caller(),
    );
    expect(await observed).toBeUndefined();
  });
});

it('measures the duration with the monotonic clock (SYS-1, BD-3)', () => {
  const recorded: number[] = [];
  const metrics = {
    ...telemetry.metrics,
    enabled: true,
    record: (name: string, value: number) => {
      if (name === 'commitSeconds') recorded.push(value);
    },
  };
  const startedAt = performance.now();
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
  observeCommits({ ...telemetry, metrics }).committed({ callers: [undefined], startedAt });
  expect(recorded).toHaveLength(1);
  expect(recorded[0]).toBeLessThan(600);
});

it('logs once a minute that the disk is full (SYS-3)', async () => {
  const lines: string[] = [];
  const logStream = { write: (line: string) => void lines.push(line) };
  const logged = createTelemetry({ service: 'meter', logLevel: 'error', logStream });
  const observer = observeCommits(logged);
  for (let n = 0; n < 3; n += 1) observer.diskFull();
  await logged.shutdown();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('disk full: the database rejects writes');
});
