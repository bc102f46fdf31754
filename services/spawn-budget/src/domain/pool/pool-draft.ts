import { type AgentRef, InternalError, omitUndefined } from '@writ/kernel';
import type { EventTime, Reduced } from './events.ts';
import {
  heldSlots,
  isHolder,
  isPastDeadline,
  type Member,
  type Pool,
  type SlotChange,
  type SlotState,
} from './pool.ts';
import { queuedMembers } from './queue.ts';

type Counter = 'totalSpawns' | 'totalPauses' | 'totalRefusals';

/** A mutable copy of a pool to which one event is applied, with the operations that the rules use. */
export class PoolDraft {
  readonly at: number;
  readonly #leaseMs: number;
  readonly #members: Map<string, Member>;
  readonly #changes: SlotChange[] = [];
  /** Agents whose slots became free and are not yet reassigned. */
  readonly #freed: AgentRef[] = [];
  #pool: Pool;

  constructor(pool: Pool, { at, leaseMs }: EventTime) {
    this.at = at;
    this.#leaseMs = leaseMs;
    this.#members = new Map(pool.members);
    this.#pool = { ...pool, members: this.#members };
  }

  /** The current pool. */
  get pool(): Pool {
    return this.#pool;
  }

  get(instance: string): Member | undefined {
    return this.#members.get(instance);
  }

  /** Whether the run has ended or passed its deadline, so that no slot or lease is granted. */
  get over(): boolean {
    return this.#pool.closed || isPastDeadline(this.#pool, this.at);
  }

  get hasFreeSlot(): boolean {
    return heldSlots(this.#pool) < this.#pool.budget.maxAgents;
  }

  /** Increments and returns the sequence number of the pool. */
  next(): number {
    const sequence = this.#pool.sequence + 1;
    this.#pool = { ...this.#pool, sequence };
    return sequence;
  }

  count(counter: Counter): void {
    this.#pool = { ...this.#pool, [counter]: this.#pool[counter] + 1 };
  }

  close(): void {
    this.#pool = { ...this.#pool, closed: true };
  }

  put(member: Member): Member {
    this.#members.set(member.agent.instance, member);
    return member;
  }

  /** Gives the agent a slot and a lease, from any state. */
  activate(member: Member, becauseOf?: AgentRef): Member {
    const { queuePosition: _, ...rest } = member;
    return this.#move(
      { ...rest, state: 'active', expiresAt: this.#leaseEnd() },
      member.state,
      becauseOf,
    );
  }

  /** Renews the lease of an active agent. */
  extend(member: Member): Member {
    return this.put({ ...member, expiresAt: this.#leaseEnd() });
  }

  /**
   * Keeps the agent's slot without a lease until the run's deadline (SB-8).
   * @param leaseExpiredAt when the lease of the agent expired, if that is the reason
   */
  suspend(member: Member, leaseExpiredAt?: number): Member {
    const { expiresAt: _, ...rest } = member;
    const { deadline } = this.#pool;
    // The root always keeps its slot (SB-1).
    const ends = deadline !== undefined && !this.isRoot(member);
    return this.#move(
      { ...rest, state: 'suspended', ...(ends ? { expiresAt: deadline } : {}) },
      member.state,
      undefined,
      leaseExpiredAt,
    );
  }

  /** Records what the agent waits for, until it is active again (EM-1). A repeated report changes nothing. */
  wait(member: Member, signals: readonly string[]): Member {
    const { agent, state, wait } = member;
    if (wait !== undefined && wait.signals.join() === signals.join()) return member;
    const change = { agent, from: state, to: state, wait: 'began', waitingFor: signals } as const;
    const sequence = this.next();
    this.#changes.push({ ...change, sequence });
    return this.put({ ...member, wait: { since: this.at, signals, sequence } });
  }

  /**
   * Takes the slot of an active agent and queues the agent (SB-4). `becauseOf` is the agent that gets the slot; if
   * omitted, the slot stays free (SB-5).
   */
  pause(member: Member, becauseOf?: AgentRef): Member {
    const { expiresAt: _, ...rest } = member;
    this.count('totalPauses');
    return this.#move(
      { ...rest, state: 'paused', queuePosition: this.next() },
      member.state,
      becauseOf,
    );
  }

  /** Gives the slot of an active agent to an agent without a slot. */
  replace(victim: Member, beneficiary: Member): void {
    this.pause(victim, beneficiary.agent);
    this.activate(beneficiary, victim.agent);
  }

  /** Removes the slot and the lease of an agent. The agent is queued only after a worker renews it (SB-8). */
  endLease(member: Member, leaseExpiredAt?: number): Member {
    const { expiresAt: _, queuePosition: __, ...rest } = member;
    this.#freed.push(member.agent);
    return this.#move({ ...rest, state: 'waiting' }, member.state, undefined, leaseExpiredAt);
  }

  /** Ends the agent's membership. */
  release(member: Member): Member {
    const { expiresAt: _, queuePosition: __, ...rest } = member;
    if (isHolder(member)) this.#freed.push(member.agent);
    return this.#move({ ...rest, state: 'released' }, member.state);
  }

  /** Gives free slots to queued agents (SB-4). */
  fill(): void {
    while (this.hasFreeSlot && this.resumeNext());
  }

  /** Gives a free slot to the first queued agent; returns whether there was one. */
  resumeNext(): boolean {
    const [first] = this.over ? [] : queuedMembers(this.#pool);
    if (first !== undefined) this.activate(first, this.#freed.shift());
    return first !== undefined;
  }

  /** Whether an agent other than `member` is active; any agent if `member` is omitted. */
  isOtherActive(member?: Member): boolean {
    for (const { state, agent } of this.#members.values())
      if (state === 'active' && agent.instance !== member?.agent.instance) return true;
    return false;
  }

  isRoot({ agent }: Member): boolean {
    return agent.instance === this.#pool.root;
  }

  /**
   * Returns the pool after the event.
   * @throws InternalError SPAWN_BUDGET_INCONSISTENT if more agents would hold a slot than allowed (SB-6)
   */
  finish(outcome: Reduced['outcome']): Reduced {
    // A demoted agent may stay queued while a slot is free, but not while no agent of the run is active (SB-5).
    if (!this.isOtherActive() && this.hasFreeSlot) this.resumeNext();
    const held = heldSlots(this.#pool);
    const { maxAgents } = this.#pool.budget;
    if (held > maxAgents)
      throw new InternalError(
        'SPAWN_BUDGET_INCONSISTENT',
        `${held} agents would hold a slot, but max_agents is ${maxAgents}; the event was not applied.`,
        { limit: String(maxAgents) },
      );
    return { pool: this.#pool, outcome: this.#refreshed(outcome), changes: this.#changes };
  }

  #refreshed(outcome: Reduced['outcome']): Reduced['outcome'] {
    const member = outcome.member && this.get(outcome.member.agent.instance);
    return member === undefined ? outcome : { ...outcome, member };
  }

  #leaseEnd(): number {
    return Math.min(this.at + this.#leaseMs, this.#pool.deadline ?? Number.POSITIVE_INFINITY);
  }

  #move(moved: Member, from: SlotState, becauseOf?: AgentRef, leaseExpiredAt?: number): Member {
    const { wait, ...awake } = moved;
    const endsWait = wait !== undefined && moved.state === 'active';
    const member = endsWait ? awake : moved;
    this.#changes.push({
      agent: member.agent,
      from,
      to: member.state,
      ...omitUndefined({ becauseOf, leaseExpiredAt }),
      ...(endsWait ? { wait: 'ended' as const } : {}),
      sequence: this.next(),
    });
    return this.put(member);
  }
}
