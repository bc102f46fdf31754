import { type AgentKey, type Clock, codeWaitFrom } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentCredentials } from '../../domain/agent/credentials.ts';
import { isHumanReply } from '../../domain/agent/message.ts';
import type { SlotAnswer, SlotRenewal } from '../../domain/agent/slot.ts';
import {
  findInactive,
  type InactiveAgentRow,
  parkSuspended,
  preemptedAgents,
  resumePreempted,
  suspendedAgents,
} from '../../store/inactive-agents.ts';
import { keyOf } from '../../store/keys.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { areFresh } from '../credentials.ts';

/**
 * Maximum number of agents in a page, to limit memory. A renewal contains at most one page of reports and, at the end
 * of a round, one page of preempted agents.
 */
const MAX_BATCH = 256;
/** Maximum number of agents that one round makes runnable because their tokens have expired. */
const MAX_TOKEN_RENEWALS = 16;

const BEFORE_ALL: AgentKey = { tenant: '', runId: '', instance: '' };

/** Dependencies of {@link InactiveAgents}. */
export interface InactiveAgentsParts {
  readonly store: WorkerStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: {
    /** Tenants whose agents this worker handles; empty for all (SYS-6). */
    readonly tenants: readonly string[];
    /**
     * Interval at which the next page of suspended agents is reported again, in milliseconds. This reports the waits
     * that a worker did not report before it crashed (EM-1).
     */
    readonly waitReportMs: number;
  };
  /** Called when an agent can be claimed again. */
  readonly onRunnable: () => void;
}

/**
 * Renews the slots of inactive agents: reports suspended agents to spawn-budget once, and polls for
 * preempted agents until they have a slot again (SB-4, SB-8). Each round polls one page of the
 * preempted agents; agents that were just parked, or whose slot changed, are included in the next
 * call. At a fixed interval, one page of suspended agents is reported again.
 */
export class InactiveAgents {
  readonly #parts: InactiveAgentsParts;
  readonly #unreported = new Map<string, AgentKey>();
  /**
   * Key up to which the suspended agents of a previous process were scanned; undefined when the
   * scan is complete.
   */
  #scanCursor: AgentKey | undefined;
  /** Key up to which the suspended agents were reported again, and when the next page is due. */
  #rescan = { after: BEFORE_ALL, dueAt: 0 };
  /** Key up to which the preempted agents were polled. */
  #pollCursor: AgentKey = BEFORE_ALL;

  constructor(parts: InactiveAgentsParts) {
    this.#parts = parts;
  }

  /** Starts a scan that reports the suspended agents of a previous process, page by page (RT-2). */
  start(): void {
    this.#scanCursor = BEFORE_ALL;
    this.#rescan = {
      after: BEFORE_ALL,
      dueAt: performance.now() + this.#parts.settings.waitReportMs,
    };
  }

  /** Whether unreported agents remain. */
  get isBehind(): boolean {
    return this.#scanCursor !== undefined || this.#unreported.size > 0;
  }

  /** Queues an agent that became inactive, or whose slot changed. */
  note({ tenant, runId, instance }: AgentKey): void {
    const key = { tenant, runId, instance };
    this.#unreported.set(JSON.stringify(key), key);
  }

  /**
   * Returns the entries for the next renewal; at the end of a round, these include a page of
   * preempted agents.
   */
  async entries(isRound: boolean): Promise<readonly RenewalEntry[]> {
    try {
      if (isRound && performance.now() >= this.#rescan.dueAt) await this.#noteAgain();
      const entries = await this.#noted();
      return isRound ? [...entries, ...(await this.#preempted())] : entries;
    } catch (error) {
      this.#parts.log.error({ err: error }, 'failed to list inactive agents');
      return [];
    }
  }

  /** Queues a page of suspended agents; a repeated report changes nothing. */
  async #noteAgain(): Promise<void> {
    const { store, settings } = this.#parts;
    const page = { tenants: settings.tenants, after: this.#rescan.after, limit: MAX_BATCH };
    const found = await suspendedAgents(store.db, page);
    const dueAt = performance.now() + this.#parts.settings.waitReportMs;
    this.#rescan = { after: (found.length === MAX_BATCH && found.at(-1)) || BEFORE_ALL, dueAt };
    for (const key of found) this.note(key);
  }

  async #noted(): Promise<RenewalEntry[]> {
    const { store, settings } = this.#parts;
    const entries: RenewalEntry[] = [];
    do {
      if (this.#unreported.size < MAX_BATCH && this.#scanCursor !== undefined) {
        const { tenants } = settings;
        const page = { tenants, after: this.#scanCursor, limit: MAX_BATCH };
        const found = await suspendedAgents(store.db, page);
        this.#scanCursor = found.at(-1);
        for (const key of found) this.note(key);
      }
      for (const [id, key] of [...this.#unreported].slice(0, MAX_BATCH)) {
        const remove = () => {
          // An agent that became inactive again in the meantime has a new key, and must still be reported.
          if (this.#unreported.get(id) === key) this.#unreported.delete(id);
        };
        const entry = await this.#entry(await findInactive(store.db, key), remove);
        if (entry === undefined) remove();
        else entries.push(entry);
      }
      // Agents with expired tokens are skipped: their slot leases expire.
    } while (entries.length === 0 && this.isBehind);
    return entries;
  }

  async #preempted(): Promise<RenewalEntry[]> {
    const { store, settings } = this.#parts;
    const { tenants } = settings;
    const page = { tenants, after: this.#pollCursor, limit: MAX_BATCH };
    const rows = await preemptedAgents(store.db, page);
    this.#pollCursor = BEFORE_ALL;
    const entries: RenewalEntry[] = [];
    let left = MAX_TOKEN_RENEWALS;
    for (const row of rows) {
      const entry = await this.#entry(row);
      if (entry !== undefined) entries.push(entry);
      else left -= 1;
      if (left > 0 && row !== rows[MAX_BATCH - 1]) continue;
      // The next round continues here, or starts over after the last page.
      this.#pollCursor = keyOf(row);
      break;
    }
    return entries;
  }

  /**
   * Returns the entry of an inactive agent; undefined when none is needed or its tokens have
   * expired.
   */
  async #entry(
    row: InactiveAgentRow | undefined,
    reported: () => void = () => undefined,
  ): Promise<RenewalEntry | undefined> {
    if (row?.state === 'SUSPENDED') return this.#suspended(row, reported);
    if (row?.state !== 'PARKED') return undefined;
    // An agent that waits for a worker with matching code keeps its slot, like a suspended agent.
    if (signalsOf(row).some(isCodeWait)) return this.#suspended(row, reported);
    if (row.wake_at === null) return await this.#parked(row, reported);
    return undefined;
  }

  #suspended(row: InactiveAgentRow, reported: () => void): RenewalEntry | undefined {
    const agentToken = this.#token(row);
    // Without a current token, the agent is not reported, and its slot lease expires.
    if (agentToken === undefined) return undefined;
    return {
      tenant: row.tenant,
      renewal: { agentToken, epoch: row.epoch, intent: 'suspend', waitingFor: signalsOf(row) },
      answered: async ({ state }) => {
        reported();
        if (state === 'paused') await this.#retryOnFailure(row, this.#park(row));
      },
    };
  }

  async #parked(row: InactiveAgentRow, reported: () => void): Promise<RenewalEntry | undefined> {
    const agentToken = this.#token(row);
    if (agentToken === undefined) {
      // Once claimed, the agent refreshes its tokens and is parked again if it is still preempted.
      await this.#resume(row);
      return undefined;
    }
    return {
      tenant: row.tenant,
      renewal: { agentToken, epoch: row.epoch, intent: 'park' },
      answered: async (answer) => {
        reported();
        if (!isStillParked(answer)) await this.#retryOnFailure(row, this.#resume(row));
      },
    };
  }

  /** Queues the agent again when the store fails, because no other component reports it. */
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
    const parked = await store.transaction((trx) => parkSuspended(trx, key, clock.now()), {
      run: key,
    });
    if (parked) log.info(idsOf(row), 'suspended agent parked');
  }

  async #resume(row: InactiveAgentRow): Promise<void> {
    const { store, clock, log, onRunnable } = this.#parts;
    const key = { ...keyOf(row), epoch: row.epoch };
    const resumed = await store.transaction((trx) => resumePreempted(trx, key, clock.now()), {
      run: key,
    });
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

/** Limits of the signals in a renewal; further signals, and the ends of longer names, are omitted. */
const MAX_SIGNALS = 16;
const MAX_SIGNAL_LENGTH = 160;

/** Returns the signals that a suspended agent waits for; replies of persons come first. */
function signalsOf({ waiting_for }: InactiveAgentRow): string[] {
  const names = JSON.parse(waiting_for) as string[];
  const ordered = names.toSorted((a, b) => Number(isHumanReply(b)) - Number(isHumanReply(a)));
  return ordered.slice(0, MAX_SIGNALS).map((name) => name.slice(0, MAX_SIGNAL_LENGTH));
}

function isCodeWait(signal: string): boolean {
  return codeWaitFrom(signal) !== undefined;
}

/**
 * Whether an agent remains parked. After the refusal STALE_EPOCH, the agent is not resumed, because a worker has
 * already claimed it. After any other refusal, the agent is resumed and receives the reason under its next lease.
 */
function isStillParked({ state, refusal }: SlotAnswer): boolean {
  return state === 'paused' || state === 'waiting' || refusal === 'STALE_EPOCH';
}

/** One entry of a renewal and its result handler. */
export interface RenewalEntry {
  readonly tenant: string;
  readonly renewal: SlotRenewal;
  answered(answer: SlotAnswer): Promise<void> | void;
}
