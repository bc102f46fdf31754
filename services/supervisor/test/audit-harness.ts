import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createVerifier,
  openSigner,
  type Signer,
  trustSigners,
  type Verifier,
} from '@writ/identity';
import { ManualClock } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { AuditChainer, type ChainerParts } from '../src/app/audit/audit-chainer.ts';
import { ChainGuard } from '../src/app/audit/chain-guard.ts';
import { createSupervisorEvents } from '../src/events.ts';
import { appendAudit } from '../src/store/audit/append-audit.ts';
import { checkpointsOf } from '../src/store/audit/checkpoints.ts';
import { readChain, readChainEnd } from '../src/store/audit/read-chain.ts';
import {
  openSupervisorStore,
  type SupervisorStore,
  type SupervisorTransaction,
} from '../src/store/supervisor-store.ts';

const CHAINER_SETTINGS = {
  auditBatchWindowMs: 1,
  auditPollMs: 20,
  auditLeaseMs: 5_000,
  auditCheckpointRecords: 3,
  auditCheckpointMs: 60_000,
} as const;

/** A supervisor store with audit records and any number of chainers. */
export class AuditHarness {
  readonly clock: ManualClock;
  readonly dataDir: string;
  readonly store: SupervisorStore;
  readonly signer: Signer;
  #appended = 0;

  private constructor(dataDir: string, store: SupervisorStore, signer: Signer, clock: ManualClock) {
    this.clock = clock;
    this.dataDir = dataDir;
    this.store = store;
    this.signer = signer;
  }

  static async open(): Promise<AuditHarness> {
    const dataDir = await mkdtemp(join(tmpdir(), 'writ-audit-'));
    const file = join(dataDir, 'supervisor.db');
    const store = await openSupervisorStore({ dialect: 'sqlite', file }, () => undefined);
    const clock = new ManualClock(new Date('2026-01-01T12:00:00Z'));
    const keyDir = join(dataDir, 'keys');
    const signer = await openSigner({ service: 'supervisor', keyDir, clock });
    return new AuditHarness(dataDir, store, signer, clock);
  }

  /** Whether the clock of the chainers is confirmed by comparison with other clocks. */
  isClockConfirmed = true;

  /** Creates a chainer; `own` replaces some of its parts. */
  chainer(replica: string, own: Partial<ChainerParts> = {}): AuditChainer {
    const telemetry = createTelemetry({ service: 'supervisor', logLevel: 'silent' });
    const config: ChainerParts['config'] = { ...CHAINER_SETTINGS, replica };
    const { store, signer, clock } = this;
    const events = createSupervisorEvents(telemetry);
    const chainGuard = this.guard(own.store);
    const isClockConfirmed = () => this.isClockConfirmed;
    const isClockSkewed = () => false;
    const shared = { store, signer, clock, telemetry, events, chainGuard, config };
    return new AuditChainer({ ...shared, isClockConfirmed, isClockSkewed, ...own });
  }

  /** Verifies what {@link signer} has signed. */
  get verifier(): Verifier {
    return createVerifier({ trust: trustSigners(this.signer), clock: this.clock });
  }

  /** Creates a guard that has not read any chain yet. */
  guard(
    store: Pick<SupervisorStore, 'db'> = this.store,
    verifier: Verifier = this.verifier,
  ): ChainGuard {
    const { log } = createTelemetry({ service: 'supervisor', logLevel: 'silent' });
    return new ChainGuard({ store, verifier, log });
  }

  /** Appends records, each in its own transaction. */
  async append(tenant: string, count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      this.#appended += 1;
      const callId = `op-${this.#appended}`;
      await this.store.transaction((trx) =>
        appendAudit(
          trx,
          { tenant, kind: 'decision', runId: 'run-1', instance: 'a-1', callId, facts: {} },
          this.clock.now(),
        ),
      );
    }
  }

  /** The current chain of a tenant: its end, records and checkpoints. */
  async chain(tenant: string) {
    const filters = {
      tenant,
      runId: '',
      instance: '',
      kind: '',
      since: undefined,
      until: undefined,
    };
    const end = await readChainEnd(this.store.db, tenant);
    return {
      end,
      records: await readChain(this.store.db, filters, 0, 10_000),
      checkpoints: await checkpointsOf(this.store.db, tenant, 0, end.sequence),
    };
  }

  async close(): Promise<void> {
    await this.store.close();
    await rm(this.dataDir, { recursive: true, force: true });
  }
}

const STATEMENTS = ['selectFrom', 'insertInto', 'updateTable', 'deleteFrom', 'executeQuery'];

/** Simulates the end of a process. */
export class Crash extends Error {}

/**
 * A store that crashes before its `n`-th operation, counted from zero. Operations are each statement of a
 * transaction, each commit, and the return after each commit. A crash after a commit keeps the changes;
 * any other crash rolls them back.
 */
export function crashingAt(store: SupervisorStore, n: number): SupervisorStore {
  let remaining = n;
  const step = (): void => {
    if (remaining === 0) throw new Crash('The process has crashed.');
    remaining -= 1;
  };
  const counted = (trx: SupervisorTransaction): SupervisorTransaction =>
    new Proxy(trx, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (STATEMENTS.includes(String(name))) step();
          return Reflect.apply(value, target, args);
        };
      },
    });
  return new Proxy(store, {
    get(target, name) {
      if (name !== 'transaction') {
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      }
      return async <T>(work: (trx: SupervisorTransaction) => Promise<T>): Promise<T> => {
        const result = await target.transaction(async (trx) => {
          const done = await work(counted(trx));
          step();
          return done;
        });
        step();
        return result;
      };
    },
  });
}
