import type { Signer } from '@writ/identity';
import { createVerifier, trustSigners } from '@writ/identity';
import { type Clock, systemClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { AuditChainer } from '../src/app/audit/audit-chainer.ts';
import { ChainGuard } from '../src/app/audit/chain-guard.ts';
import { type SupervisorContext, transact } from '../src/context.ts';
import { createSupervisorEvents } from '../src/events.ts';
import { appendAudit } from '../src/store/audit/append-audit.ts';
import { assertNotHalted, findHalt, saveHalt } from '../src/store/halt/halts.ts';
import { appendTimeline, findSequence } from '../src/store/run/timeline.ts';
import { openSupervisorStore, type SupervisorStore } from '../src/store/supervisor-store.ts';

const telemetry = createTelemetry({ service: 'supervisor', logLevel: 'silent' });
/** Short, so that another replica soon takes over the chainer of a killed replica. */
const LEASE_MS = 100;
/** The clock of every third chainer: a lease that such a chainer acquires must not block the other replicas (BD-3). */
const fastClock: Clock = {
  ...systemClock,
  now: () => new Date(systemClock.now().getTime() + 60 * 60_000),
};

let opened = 0;

/** A supervisor without its listeners and peers: halts, timelines, audit records and their chainer. */
export interface TimelineReplica {
  readonly store: SupervisorStore;
  readonly context: SupervisorContext;
  readonly chainer: AuditChainer;
  stop(): Promise<void>;
}

/** Opens a replica; the caller closes its store. */
export async function openTimelineReplica(
  location: StoreLocation,
  signer: Signer,
): Promise<TimelineReplica> {
  const store = await openSupervisorStore(location, () => undefined);
  opened += 1;
  const clock = systemClock;
  const verifier = createVerifier({ trust: trustSigners(signer), clock });
  const chainGuard = new ChainGuard({ store, verifier, log: telemetry.log });
  const events = createSupervisorEvents(telemetry);
  const config = {
    replica: `supervisor-${opened}`,
    auditBatchWindowMs: 1,
    auditPollMs: 20,
    auditLeaseMs: LEASE_MS,
    auditCheckpointRecords: 7,
    auditCheckpointMs: 60_000,
    auditWaitMs: 60_000,
    watchPollMs: 20,
  };
  await chainGuard.open();
  const parts = { store, signer, clock, telemetry, events, chainGuard, config };
  const chainer = new AuditChainer({
    ...parts,
    clock: opened % 3 === 0 ? fastClock : clock,
    isClockConfirmed: () => true,
    isClockSkewed: () => false,
  });
  chainer.start();
  const context = parts as unknown as SupervisorContext;
  return { store, context, chainer, stop: () => chainer.stop() };
}

/** The event that a review writes for a run, once for each event id. */
export interface ReviewedEvent {
  readonly tenant: string;
  readonly runId: string;
  readonly eventId: string;
}

/**
 * Writes a timeline entry and an audit record as a review does: after the halts were checked, in one transaction of the
 * run. A repeat changes nothing. Returns the sequence.
 * @throws PreconditionError HALTED
 */
export async function recordEvent(
  context: SupervisorContext,
  { tenant, runId, eventId }: ReviewedEvent,
): Promise<number> {
  const run = { tenant, runId };
  return await transact(
    context,
    async ({ trx, at }) => {
      const known = await findSequence(trx, { ...run, eventId });
      if (known !== undefined) return known;
      await assertNotHalted(trx, { ...run, instance: 'root' });
      const entry = new TextEncoder().encode(eventId);
      const sequence = await appendTimeline(trx, { ...run, eventId, entry }, at);
      const record = { ...run, kind: 'decision', instance: 'root', callId: eventId } as const;
      await appendAudit(trx, { ...record, facts: { sequence } }, at);
      return sequence;
    },
    { run },
  );
}

/** Records that a halt is lifted, as the step `lift` of the resume order does. */
export async function liftRecorded(context: SupervisorContext, haltId: string): Promise<void> {
  await transact(context, async ({ trx, at }) => {
    const halt = await findHalt(trx, haltId);
    if (halt?.lifted_at === null) await saveHalt(trx, haltId, { lifted_at: at, resumed_by: 'mia' });
  });
}
