import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentCredentials } from '../../domain/agent/credentials.ts';
import type { SlotAnswer } from '../../domain/agent/slot.ts';
import { type AgentRow, findAgent } from '../../store/agents.ts';
import { type AgentKey, keyOf } from '../../store/keys.ts';
import { preemptedAgents, resumePreempted, sleepingAgents } from '../../store/resting.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { areFresh } from '../credentials.ts';
import type { RenewalEntry } from './renewal-entry.ts';

/** Sleepers of a former process that are told of in one call: a hundred thousand would fill the memory. */
const MOST_AT_ONCE = 256;

/** What is needed to speak for agents that are rows only. */
export interface RestingParts {
  readonly store: WorkerStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: {
    /** Tenants whose agents it speaks for; none given means all (SYS-6). */
    readonly tenants: readonly string[];
  };
  /** Told when an agent can be taken up again. */
  readonly onRunnable: () => void;
}

/**
 * The slots of agents that hold no memory: of those that fell asleep, until spawn-budget knows it, and
 * of those that were preempted, until they have a slot again (SB-4, SB-8).
 */
export class RestingAgents {
  readonly #parts: RestingParts;
  readonly #untold = new Map<string, AgentKey>();
  /** Up to where the sleepers of a former process were looked at; undefined when none are left. */
  #lookedAt: AgentKey | undefined;

  constructor(parts: RestingParts) {
    this.#parts = parts;
  }

  /** What a former process may not have told any more is told again, a few at a time (RT-2). */
  start(): void {
    this.#lookedAt = { tenant: '', runId: '', instance: '' };
  }

  /** Whether sleepers of a former process are left to be told of. */
  get isBehind(): boolean {
    return this.#lookedAt !== undefined;
  }

  /** Notes an agent that sleeps. */
  fellAsleep({ tenant, runId, instance }: AgentKey): void {
    const key = { tenant, runId, instance };
    this.#untold.set(JSON.stringify(key), key);
  }

  /** What the next renewal tells and asks. */
  async entries(): Promise<readonly RenewalEntry[]> {
    const { store, settings, log } = this.#parts;
    try {
      const entries = await this.#sleepers();
      for (const row of await preemptedAgents(store.db, settings.tenants)) {
        const entry = await this.#preempted(row);
        if (entry !== undefined) entries.push(entry);
      }
      return entries;
    } catch (error) {
      log.error({ err: error }, 'agents at rest could not be looked up');
      return [];
    }
  }

  async #sleepers(): Promise<RenewalEntry[]> {
    const { store, settings } = this.#parts;
    const entries: RenewalEntry[] = [];
    do {
      if (this.#untold.size < MOST_AT_ONCE && this.#lookedAt !== undefined) {
        const { tenants } = settings;
        const found = await sleepingAgents(store.db, tenants, this.#lookedAt, MOST_AT_ONCE);
        this.#lookedAt = found.at(-1);
        for (const key of found) this.fellAsleep(key);
      }
      for (const [id, key] of this.#untold) {
        const entry = this.#sleeper(id, await findAgent(store.db, key));
        if (entry !== undefined) entries.push(entry);
      }
      // Those whose tokens have expired are passed over: their leases lapse by themselves.
    } while (entries.length === 0 && this.isBehind);
    return entries;
  }

  #sleeper(id: string, row: AgentRow | undefined): RenewalEntry | undefined {
    const agentToken = row?.state === 'SUSPENDED' ? this.#token(row) : undefined;
    // Its lease lapses by itself then.
    if (row === undefined || agentToken === undefined) this.#untold.delete(id);
    if (row === undefined || agentToken === undefined) return undefined;
    return {
      renewal: { agentToken, epoch: row.epoch, intent: 'suspend' },
      answered: () => {
        this.#untold.delete(id);
      },
    };
  }

  async #preempted(row: AgentRow): Promise<RenewalEntry | undefined> {
    const agentToken = this.#token(row);
    if (agentToken === undefined) {
      // Taken up, it gets fresh tokens, and is parked again with them if it is still paused.
      await this.#resume(row);
      return undefined;
    }
    return {
      renewal: { agentToken, epoch: row.epoch, intent: 'park' },
      answered: async (answer) => {
        if (!isStillParked(answer)) await this.#resume(row);
      },
    };
  }

  async #resume(row: AgentRow): Promise<void> {
    const { store, clock, log, onRunnable } = this.#parts;
    const at = clock.now();
    const key = { ...keyOf(row), epoch: row.epoch };
    const resumed = await store.transaction((trx) => resumePreempted(trx, key, at));
    if (!resumed) return;
    log.info({ tenant: row.tenant, run_id: row.run_id, agent: row.instance }, 'agent resumed');
    onRunnable();
  }

  #token(row: AgentRow): string | undefined {
    const credentials = JSON.parse(row.credentials ?? 'null') as AgentCredentials | null;
    if (credentials === null || !areFresh(credentials, this.#parts.clock.now().getTime())) {
      return undefined;
    }
    return credentials.spawnBudget;
  }
}

/** Whoever was refused finds out why when it is taken up; a later epoch means that it was already. */
function isStillParked({ standing, refusal }: SlotAnswer): boolean {
  return standing === 'paused' || standing === 'waiting' || refusal === 'STALE_EPOCH';
}
