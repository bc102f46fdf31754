import type { AgentKey } from '@writ/kernel';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { insertAgent } from '../src/store/agents.ts';
import { claimAgent, findRunnable } from '../src/store/claims.ts';
import {
  endUnusedLease,
  type LeasedAgent,
  leaseOwner,
  reclaimLeases,
  renewLeases,
  saveLeased,
} from '../src/store/leases.ts';
import { openWorkerStore, type WorkerStore } from '../src/store/worker-store.ts';
import { AGENT, TENANT } from './delivery.ts';
import { AT, inactiveAgentRow } from './inactive-agent-row.ts';

/** Ids of workers, one of which is a prefix of the other. */
const WORKERS = ['worker-1', 'worker-10'] as const;

/** An operation of the latest process of a worker, or of its previous process, which was paused and continues. */
interface Move {
  readonly worker: (typeof WORKERS)[number];
  readonly isFormer: boolean;
  readonly does: 'restart' | 'claim' | 'renew' | 'release' | 'endUnused';
}

const move: fc.Arbitrary<Move> = fc.record({
  worker: fc.constantFrom(...WORKERS),
  isFormer: fc.boolean(),
  does: fc.constantFrom('restart', 'claim', 'claim', 'renew', 'release', 'endUnused'),
});

/** One agent, the processes of two workers, and a model of the expected lease. */
class Fleet {
  readonly #store: WorkerStore;
  readonly #key: AgentKey;
  readonly #processes = new Map<string, string[]>();
  readonly #latest = new Map<string, LeasedAgent>();
  #epoch = 0n;
  #holder: string | undefined;
  /** Whether the previous holder may still run the agent. */
  #mustFence = false;
  #seconds = 0;

  constructor(store: WorkerStore, runId: string) {
    this.#store = store;
    this.#key = { tenant: TENANT, runId, instance: AGENT.instance };
    for (const worker of WORKERS) this.#processes.set(worker, [leaseOwner(worker)]);
  }

  async deliver(): Promise<void> {
    const row = { run_id: this.#key.runId, state: 'RUNNING', waiting_for: '[]', epoch: 0n };
    await this.#store.transaction((trx) => insertAgent(trx, inactiveAgentRow(row)));
  }

  async apply({ worker, isFormer, does }: Move): Promise<void> {
    const processes = this.#processes.get(worker) ?? [];
    const owner = processes.at(isFormer ? -2 : -1) ?? processes[0] ?? '';
    switch (does) {
      case 'restart':
        return await this.#restart(worker, processes);
      case 'claim':
        return await this.#claim(owner);
      case 'renew':
        return await this.#renew(owner);
      case 'release':
        return await this.#release(owner);
      case 'endUnused':
        return await this.#endUnused(owner);
    }
  }

  /** Deletes the agent, so that other fleets do not find it. */
  async end(): Promise<void> {
    await this.#store.transaction((trx) =>
      trx.deleteFrom('agents').where('run_id', '=', this.#key.runId).execute(),
    );
  }

  async #restart(worker: string, processes: string[]): Promise<void> {
    await this.#store.transaction((trx) => reclaimLeases(trx, worker));
    if (this.#holder !== undefined && processes.includes(this.#holder)) {
      this.#holder = undefined;
      this.#epoch += 1n;
      this.#mustFence = true;
    }
    processes.push(leaseOwner(worker));
  }

  async #claim(owner: string): Promise<void> {
    const terms = this.#terms(owner);
    const found = await findRunnable(this.#store.db, terms.at, 10, []);
    expect(found).toEqual(this.#holder === undefined ? [this.#key] : []);
    const row = await this.#store.transaction((trx) => claimAgent(trx, this.#key, terms));
    if (this.#holder !== undefined) return expect(row).toBeUndefined();
    this.#epoch += 1n;
    expect(row?.epoch).toBe(this.#epoch);
    expect(row?.lease_owner != null).toBe(this.#mustFence);
    this.#holder = owner;
    this.#latest.set(owner, { ...this.#key, epoch: this.#epoch });
  }

  async #renew(owner: string): Promise<void> {
    const terms = this.#terms(owner);
    const isHolder = this.#holder === owner;
    const held = await this.#store.transaction((trx) => renewLeases(trx, terms));
    expect(held).toEqual(isHolder ? [{ ...this.#key, epoch: this.#epoch }] : []);
    const rows = await this.#store.db.selectFrom('agents').select('lease_expires_at').execute();
    const extended = rows.filter((row) => row.lease_expires_at?.getTime() === +terms.expiresAt);
    expect(extended).toHaveLength(isHolder ? 1 : 0);
  }

  async #release(owner: string): Promise<void> {
    const lease = this.#latest.get(owner);
    if (lease === undefined) return;
    const released = { lease_owner: null, lease_expires_at: null };
    const saved = this.#store.transaction((trx) => saveLeased(trx, lease, released));
    if (!this.#isHeld(owner, lease)) {
      return await expect(saved).rejects.toMatchObject({ reason: 'STALE_EPOCH' });
    }
    await saved;
    this.#holder = undefined;
    this.#mustFence = false;
  }

  async #endUnused(owner: string): Promise<void> {
    const lease = this.#latest.get(owner);
    if (lease === undefined) return;
    await this.#store.transaction((trx) => endUnusedLease(trx, owner, lease));
    if (!this.#isHeld(owner, lease)) return;
    this.#holder = undefined;
    this.#mustFence = true;
  }

  #isHeld(owner: string, { epoch }: LeasedAgent): boolean {
    return this.#holder === owner && this.#epoch === epoch;
  }

  #terms(owner: string) {
    this.#seconds += 1;
    const at = new Date(AT.getTime() + this.#seconds * 1_000);
    return { owner, at, expiresAt: new Date(at.getTime() + 3_600_000) };
  }
}

describe('a lease', () => {
  let store: WorkerStore;
  beforeAll(async () => {
    store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
  });
  afterAll(() => store.close());

  it('belongs to one process, is fenced by a restart of its worker, and records whether the previous owner may still act (RT-2)', async () => {
    let fleets = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 30 }), async (moves) => {
        fleets += 1;
        const fleet = new Fleet(store, `run-${fleets}`);
        await fleet.deliver();
        for (const one of moves) await fleet.apply(one);
        await fleet.end();
      }),
      { numRuns: 60 },
    );
  });
});
