import type { Clock } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentCredentials } from '../../domain/agent/credentials.ts';
import type { SlotAnswer, SlotRenewal } from '../../domain/agent/slot.ts';
import {
  findInactive,
  type InactiveAgentRow,
  parkSuspended,
  preemptedAgents,
  resumePreempted,
  suspendedAgents,
} from '../../store/inactive-agents.ts';
import { type AgentKey, keyOf } from '../../store/keys.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { areFresh } from '../credentials.ts';

/** Agents that are told of, or asked about, in one call: a hundred thousand would fill the memory. */
const MAX_BATCH = 256;
/** Agents that are taken up in one round only because their tokens have expired. */
const MAX_TOKEN_RENEWALS = 16;

const BEFORE_ALL: AgentKey = { tenant: '', runId: '', instance: '' };

/** What is needed to speak for agents that are rows only. */
export interface InactiveAgentsParts {
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
 * of those that were preempted, until they have a slot again (SB-4, SB-8). Each round asks about a
 * bounded part of the preempted ones, one part after the other; whoever was just parked, or whose slot
 * moved, is asked about with the next call.
 */
export class InactiveAgents {
  readonly #parts: InactiveAgentsParts;
  readonly #unreported = new Map<string, AgentKey>();
  /** Up to where the sleepers of a former process were looked at; undefined when none are left. */
  #scanCursor: AgentKey | undefined;
  /** Up to where the preempted agents were asked about. */
  #pollCursor: AgentKey = BEFORE_ALL;

  constructor(parts: InactiveAgentsParts) {
    this.#parts = parts;
  }

  /** What a former process may not have told any more is told again, a few at a time (RT-2). */
  start(): void {
    this.#scanCursor = BEFORE_ALL;
  }

  /** Whether agents are left to be told of. */
  get isBehind(): boolean {
    return this.#scanCursor !== undefined || this.#unreported.size > 0;
  }

  /** Notes an agent that came to rest, or whose slot moved while it rests. */
  note({ tenant, runId, instance }: AgentKey): void {
    const key = { tenant, runId, instance };
    this.#unreported.set(JSON.stringify(key), key);
  }

  /** What the next renewal tells and asks; at the end of a round also about those that nobody spoke of. */
  async entries(isRound: boolean): Promise<readonly RenewalEntry[]> {
    try {
      const entries = await this.#noted();
      return isRound ? [...entries, ...(await this.#preempted())] : entries;
    } catch (error) {
      this.#parts.log.error({ err: error }, 'agents at rest could not be looked up');
      return [];
    }
  }

  async #noted(): Promise<RenewalEntry[]> {
    const { store, settings } = this.#parts;
    const entries: RenewalEntry[] = [];
    do {
      if (this.#unreported.size < MAX_BATCH && this.#scanCursor !== undefined) {
        const { tenants } = settings;
        const page = { tenants, after: this.#scanCursor, most: MAX_BATCH };
        const found = await suspendedAgents(store.db, page);
        this.#scanCursor = found.at(-1);
        for (const key of found) this.note(key);
      }
      for (const [id, key] of [...this.#unreported].slice(0, MAX_BATCH)) {
        const entry = await this.#entry(await findInactive(store.db, key), () => {
          this.#unreported.delete(id);
        });
        if (entry === undefined) this.#unreported.delete(id);
        else entries.push(entry);
      }
      // Those whose tokens have expired are passed over: their leases lapse by themselves.
    } while (entries.length === 0 && this.isBehind);
    return entries;
  }

  async #preempted(): Promise<RenewalEntry[]> {
    const { store, settings } = this.#parts;
    const { tenants } = settings;
    const page = { tenants, after: this.#pollCursor, most: MAX_BATCH };
    const rows = await preemptedAgents(store.db, page);
    this.#pollCursor = BEFORE_ALL;
    const entries: RenewalEntry[] = [];
    let left = MAX_TOKEN_RENEWALS;
    for (const row of rows) {
      const entry = await this.#entry(row);
      if (entry !== undefined) entries.push(entry);
      else left -= 1;
      if (left > 0 && row !== rows[MAX_BATCH - 1]) continue;
      // The next round goes on from here; after the last one it begins again.
      this.#pollCursor = keyOf(row);
      break;
    }
    return entries;
  }

  /** What is told or asked about an agent at rest; undefined when there is nothing, or nobody may say it. */
  async #entry(
    row: InactiveAgentRow | undefined,
    told: () => void = () => undefined,
  ): Promise<RenewalEntry | undefined> {
    if (row?.state === 'SUSPENDED') return this.#sleeper(row, told);
    if (row?.state === 'PARKED' && row.wake_at === null) return await this.#parked(row, told);
    return undefined;
  }

  #sleeper(row: InactiveAgentRow, told: () => void): RenewalEntry | undefined {
    const agentToken = this.#token(row);
    // Its lease lapses by itself then.
    if (agentToken === undefined) return undefined;
    return {
      tenant: row.tenant,
      renewal: { agentToken, epoch: row.epoch, intent: 'suspend' },
      answered: async ({ state }) => {
        told();
        if (state === 'paused') await this.#retryOnFailure(row, this.#park(row));
      },
    };
  }

  async #parked(row: InactiveAgentRow, told: () => void): Promise<RenewalEntry | undefined> {
    const agentToken = this.#token(row);
    if (agentToken === undefined) {
      // Taken up, it gets fresh tokens, and is parked again with them if it is still paused.
      await this.#resume(row);
      return undefined;
    }
    return {
      tenant: row.tenant,
      renewal: { agentToken, epoch: row.epoch, intent: 'park' },
      answered: async (answer) => {
        told();
        if (!isStillParked(answer)) await this.#retryOnFailure(row, this.#resume(row));
      },
    };
  }

  /** What a store that fails does not take is asked for again: nobody else speaks for one that sleeps. */
  async #retryOnFailure(row: InactiveAgentRow, work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.note(keyOf(row));
      throw error;
    }
  }

  async #park(row: InactiveAgentRow): Promise<void> {
    const { store, clock, log } = this.#parts;
    const key = { ...keyOf(row), epoch: row.epoch };
    const parked = await store.transaction((trx) => parkSuspended(trx, key, clock.now()));
    if (parked) log.info(idsOf(row), 'agent parked while it slept');
  }

  async #resume(row: InactiveAgentRow): Promise<void> {
    const { store, clock, log, onRunnable } = this.#parts;
    const key = { ...keyOf(row), epoch: row.epoch };
    const resumed = await store.transaction((trx) => resumePreempted(trx, key, clock.now()));
    if (!resumed) return;
    log.info(idsOf(row), 'agent resumed');
    onRunnable();
  }

  #token(row: InactiveAgentRow): string | undefined {
    const credentials = JSON.parse(row.credentials ?? 'null') as AgentCredentials | null;
    if (credentials === null || !areFresh(credentials, this.#parts.clock.now().getTime())) {
      return undefined;
    }
    return credentials.spawnBudget;
  }
}

function idsOf({ tenant, run_id, instance }: InactiveAgentRow) {
  return { tenant, run_id, agent: instance };
}

/** Whoever was refused finds out why when it is taken up; a later epoch means that it was already. */
function isStillParked({ state, refusal }: SlotAnswer): boolean {
  return state === 'paused' || state === 'waiting' || refusal === 'STALE_EPOCH';
}

/** One entry of a renewal, and who is told what it came to. */
export interface RenewalEntry {
  readonly tenant: string;
  readonly renewal: SlotRenewal;
  answered(answer: SlotAnswer): Promise<void> | void;
}
