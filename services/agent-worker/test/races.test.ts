import type { AgentKey } from '@writ/kernel';
import { isTerminal, outcomeOf } from '@writ/kernel';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onAgentEnded } from '../src/app/agents/on-agent-ended.ts';
import { wakeAgent } from '../src/app/agents/send-signal.ts';
import { DELIVERED, RESUMED, reduceAgent } from '../src/domain/agent/state.ts';
import { findAgent, insertAgent, saveAgent, statusColumns, statusOf } from '../src/store/agents.ts';
import { claimAgent } from '../src/store/claims.ts';
import { resumePreempted } from '../src/store/inactive-agents.ts';
import { type LeasedAgent, saveLeased } from '../src/store/leases.ts';
import { openWorkerStore, type WorkerStore } from '../src/store/worker-store.ts';
import { TENANT } from './delivery.ts';
import { inactiveAgentRow } from './inactive-agent-row.ts';

/** Events of one agent, in any order, from two workers and the supervisor. */
type Move =
  | {
      readonly by: 'a' | 'b';
      readonly does: 'claim' | 'finish' | 'deadline' | 'park' | 'preempted';
    }
  | { readonly by: 'supervisor'; readonly does: 'cancel' | 'halt' | 'resume' | 'slot' }
  /** The worker that holds the lease has crashed; its lease expires. */
  | { readonly by: 'lease expiry'; readonly does: 'crash' };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      by: fc.constantFrom('a' as const, 'b' as const),
      does: fc.constantFrom(
        'claim' as const,
        'claim' as const,
        'finish' as const,
        'deadline' as const,
        'park' as const,
        'preempted' as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      by: fc.constant('supervisor' as const),
      does: fc.constantFrom(
        'cancel' as const,
        'halt' as const,
        'resume' as const,
        'resume' as const,
        'slot' as const,
        'slot' as const,
      ),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ by: 'lease expiry', does: 'crash' } as const) },
);

const ENDINGS = {
  finish: 'success',
  deadline: 'deadline',
  cancel: 'cancelled',
  halt: 'halted',
} as const;

const NO_LEASE = { lease_owner: null, lease_expires_at: null };

/** One agent and the leases of two workers; the test applies the events to them. */
class Race {
  readonly #store: WorkerStore;
  readonly key: AgentKey;
  readonly #leases = new Map<string, LeasedAgent>();
  #now = Date.parse('2026-01-01T00:00:00Z');
  /** Stored stop reasons, in order. */
  readonly written: string[] = [];

  constructor(store: WorkerStore, runId: string) {
    this.#store = store;
    this.key = { tenant: TENANT, runId, instance: 'agent-1' };
  }

  get at(): Date {
    return new Date(this.#now);
  }

  async deliver(): Promise<void> {
    const { tenant, runId, instance } = this.key;
    const row = inactiveAgentRow({
      tenant,
      run_id: runId,
      instance,
      name: 'agent',
      request_id: 'deliver',
      session_id: 'session',
      state: DELIVERED.state,
      waiting_for: '[]',
      epoch: 0n,
      credentials: '{}',
      created_at: this.at,
    });
    await this.#store.transaction((trx) => insertAgent(trx, row));
  }

  /** Applies an event; a rejected event changes nothing. */
  async apply({ by, does }: Move): Promise<void> {
    this.#now += 1_000;
    switch (does) {
      case 'claim':
        return await this.#claim(by);
      case 'finish':
      case 'deadline':
        return await this.#asWorker(by, { type: 'ended', stopReason: ENDINGS[does] });
      case 'park':
        return await this.#asWorker(by, { type: 'parked', until: new Date(this.#now + 1_500) });
      case 'preempted':
        return await this.#asWorker(by, { type: 'preempted' });
      case 'cancel':
      case 'halt':
        return await this.#endFromOutside(ENDINGS[does]);
      case 'resume':
        return await this.#resume();
      case 'slot': {
        const lease = [...this.#leases.values()].at(-1);
        if (lease === undefined) return;
        await this.#store.transaction((trx) => resumePreempted(trx, lease, this.at));
        return;
      }
      case 'crash':
        this.#now += 3_600_000;
    }
  }

  async status() {
    const row = await findAgent(this.#store.db, this.key);
    if (row === undefined) throw new Error('The agent does not exist.');
    return { ...statusOf(row), credentials: row.credentials, owner: row.lease_owner };
  }

  async #claim(owner: string): Promise<void> {
    const terms = { owner, at: this.at, expiresAt: new Date(this.#now + 60_000) };
    const row = await this.#store.transaction((trx) => claimAgent(trx, this.key, terms));
    if (row !== undefined) this.#leases.set(owner, { ...this.key, epoch: row.epoch });
  }

  async #asWorker(owner: string, event: Parameters<typeof reduceAgent>[1]): Promise<void> {
    const lease = this.#leases.get(owner);
    if (lease === undefined) return;
    // A worker knows only what it received with its lease.
    const status = reduceAgent(DELIVERED, event);
    try {
      await this.#store.transaction((trx) =>
        saveLeased(trx, lease, { ...statusColumns(status, this.at), ...NO_LEASE }),
      );
    } catch (error) {
      expect(error).toMatchObject({ reason: 'STALE_EPOCH' });
      return;
    }
    if (event.type === 'ended') this.written.push(event.stopReason);
  }

  async #endFromOutside(stopReason: string): Promise<void> {
    await this.#store.transaction(async (trx) => {
      const row = await findAgent(trx, this.key);
      if (row === undefined || isTerminal(statusOf(row).state)) return;
      const status = reduceAgent(statusOf(row), { type: 'ended', stopReason });
      await saveAgent(trx, this.key, { ...statusColumns(status, this.at), ...NO_LEASE });
      await onAgentEnded(trx, row, { stopReason }, this.at);
      this.written.push(stopReason);
    });
  }

  async #resume(): Promise<void> {
    await this.#store.transaction(async (trx) => {
      const row = await findAgent(trx, this.key);
      if (row !== undefined) await wakeAgent(trx, row, { name: RESUMED }, this.at);
    });
  }
}

describe('an agent under races', () => {
  let store: WorkerStore;
  beforeAll(async () => {
    store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
  });
  afterAll(() => store.close());

  it('ends exactly once, with the first stored stop reason, and has no lease afterwards (AG-7, RT-2, RT-4)', async () => {
    let races = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 30 }), async (moves) => {
        races += 1;
        const race = new Race(store, `run-${races}`);
        await race.deliver();
        for (const one of moves) {
          await race.apply(one);
          const { state, stopReason, credentials, owner } = await race.status();
          const [first] = race.written;
          expect(isTerminal(state)).toBe(first !== undefined);
          if (first === undefined) continue;
          expect(state).toBe(outcomeOf(first).state);
          expect({ stopReason, credentials, owner }).toEqual({
            stopReason: first,
            credentials: null,
            owner: null,
          });
        }
        expect(race.written.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 60 },
    );
  });
});
