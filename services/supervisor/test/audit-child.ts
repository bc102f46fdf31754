// Started and killed by audit-chain.test.ts: appends records in a loop and prints a line after the commit of each
// record, while a chainer links the records.
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { createVerifier, openSigner, trustSigners } from '@writ/identity';
import { ManualClock } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { AuditChainer } from '../src/app/audit/audit-chainer.ts';
import { ChainGuard } from '../src/app/audit/chain-guard.ts';
import { createSupervisorEvents } from '../src/events.ts';
import { appendAudit } from '../src/store/audit/append-audit.ts';
import { openSupervisorStore } from '../src/store/supervisor-store.ts';

const [dataDir = ''] = process.argv.slice(2);
const clock = new ManualClock(new Date('2026-01-01T12:00:00Z'));
const file = join(dataDir, 'supervisor.db');
const store = await openSupervisorStore({ dialect: 'sqlite', file }, () => undefined);
const keyDir = join(dataDir, 'keys');
const signer = await openSigner({ service: 'supervisor', keyDir, clock });
const telemetry = createTelemetry({ service: 'supervisor', logLevel: 'silent' });
const settings = { auditBatchWindowMs: 0, auditPollMs: 1_000, auditLeaseMs: 5_000 };
const config = { ...settings, replica: 'child', auditCheckpointRecords: 3, auditCheckpointMs: 1 };
const verifier = createVerifier({ trust: trustSigners(signer), clock });
const chainGuard = new ChainGuard({ store, verifier, log: telemetry.log });
const events = createSupervisorEvents(telemetry);
const own = { store, signer, clock, telemetry, events, chainGuard, config };
new AuditChainer({ ...own, isClockConfirmed: () => true, isClockSkewed: () => false }).start();

for (let n = 0; ; n += 1) {
  const entry = { tenant: 'acme', kind: 'decision', callId: `op-${n}`, facts: {} } as const;
  await store.transaction((trx) => appendAudit(trx, entry, clock.now()));
  writeSync(1, 'appended\n');
}
