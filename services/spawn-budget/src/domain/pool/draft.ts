import { type AgentRef, InternalError, Priority } from '@writ/kernel';
import type { EventTime, Reduced } from './events.ts';
import {
  heldSlots,
  inLine,
  isHolder,
  isOver,
  type Member,
  type Pool,
  type SlotChange,
  type SlotState,
} from './pool.ts';

type Counter = 'totalSpawns' | 'totalPauses' | 'totalRefusals';

/** A pool in the middle of one event: the moves that rules are made of. The pool that it began with stays as it is. */
export class PoolDraft {
  readonly at: number;
  readonly #leaseMs: number;
  readonly #members: Map<string, Member>;
  readonly #changes: SlotChange[] = [];
  /** Whose slots came free and were not given on yet. */
  readonly #freed: AgentRef[] = [];
  #pool: Pool;

  constructor(pool: Pool, { at, leaseMs }: EventTime) {
    this.at = at;
    this.#leaseMs = leaseMs;
    this.#members = new Map(pool.members);
    this.#pool = { ...pool, members: this.#members };
  }

  /** The pool as it stands by now. */
  get pool(): Pool {
    return this.#pool;
  }

  get(instance: string): Member | undefined {
    return this.#members.get(instance);
  }

  /** Whether the run's time is up, so that nobody gets a slot or a lease. */
  get over(): boolean {
    return this.#pool.closed || isOver(this.#pool, this.at);
  }

  get hasRoom(): boolean {
    return heldSlots(this.#pool) < this.#pool.budget.maxAgents;
  }

  /** The next number of the pool. */
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

  /** Gives the agent a slot and a lease, wherever it stood. */
  activate(member: Member, becauseOf?: AgentRef): Member {
    const { line: _, ...rest } = member;
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
   * Leaves the agent its slot without a lease, until the run's deadline (SB-8).
   * @param leaseExpiredAt when its lease ended, if that is why
   */
  suspend(member: Member, leaseExpiredAt?: number): Member {
    const { expiresAt: _, ...rest } = member;
    const { deadline } = this.#pool;
    // The root keeps its slot whatever happens (SB-1).
    const ends = deadline !== undefined && !this.isRoot(member);
    return this.#move(
      { ...rest, state: 'suspended', ...(ends ? { expiresAt: deadline } : {}) },
      member.state,
      undefined,
      leaseExpiredAt,
    );
  }

  /** Takes the slot of an active agent for `becauseOf` and puts the agent in line (SB-4). */
  pause(member: Member, becauseOf?: AgentRef): Member {
    const { expiresAt: _, ...rest } = member;
    this.count('totalPauses');
    return this.#move({ ...rest, state: 'paused', line: this.next() }, member.state, becauseOf);
  }

  /** Gives the slot of an active agent to one that has none. */
  replace(victim: Member, beneficiary: Member): void {
    this.pause(victim, beneficiary.agent);
    this.activate(beneficiary, victim.agent);
  }

  /** Takes slot and lease from the agent: it is out of line until somebody picks it up (SB-8). */
  endLease(member: Member, leaseExpiredAt?: number): Member {
    const { expiresAt: _, line: __, ...rest } = member;
    this.#freed.push(member.agent);
    return this.#move({ ...rest, state: 'waiting' }, member.state, undefined, leaseExpiredAt);
  }

  /** Ends the agent's membership. */
  release(member: Member): Member {
    const { expiresAt: _, line: __, ...rest } = member;
    if (isHolder(member)) this.#freed.push(member.agent);
    return this.#move({ ...rest, state: 'released' }, member.state);
  }

  /**
   * The agent whose slot a requester may take: the lowest active one strictly below, of equals the one
   * that acquired first; never the root (SB-2). A suspended agent keeps its slot (SB-8).
   */
  victimBelow(priority: Priority): Member | undefined {
    if (priority <= Priority.NORMAL || !this.#pool.budget.allowPreempt) return undefined;
    return [...this.#members.values()]
      .filter((member) => member.state === 'active' && !this.isRoot(member))
      .filter((member) => member.priority < priority)
      .sort((a, b) => a.priority - b.priority || a.order - b.order)
      .at(0);
  }

  /** Gives free slots to those in line (SB-4). */
  fill(): void {
    while (this.hasRoom && this.resumeNext());
  }

  /** Gives a free slot to the first in line; answers whether there was somebody. */
  resumeNext(): boolean {
    const [first] = this.over ? [] : inLine(this.#pool);
    if (first !== undefined) this.activate(first, this.#freed.shift());
    return first !== undefined;
  }

  /** Whether another agent of the run can act now. */
  isOtherActive(member?: Member): boolean {
    for (const { state, agent } of this.#members.values())
      if (state === 'active' && agent.instance !== member?.agent.instance) return true;
    return false;
  }

  isRoot({ agent }: Member): boolean {
    return agent.instance === this.#pool.root;
  }

  /**
   * The pool after the event.
   * @throws InternalError SPAWN_BUDGET_INCONSISTENT rather than let more agents hold a slot than may (SB-6)
   */
  finish(outcome: Reduced['outcome']): Reduced {
    // A slot may stay free beside a demoted agent, but not when nobody else could use it (SB-5).
    if (!this.isOtherActive() && this.hasRoom) this.resumeNext();
    const held = heldSlots(this.#pool);
    const { maxAgents } = this.#pool.budget;
    if (held > maxAgents)
      throw new InternalError(
        'SPAWN_BUDGET_INCONSISTENT',
        `${held} agents would hold a slot where max_agents is ${maxAgents}; nothing was changed.`,
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

  #move(member: Member, from: SlotState, becauseOf?: AgentRef, leaseExpiredAt?: number): Member {
    this.#changes.push({
      agent: member.agent,
      from,
      to: member.state,
      ...(becauseOf === undefined ? {} : { becauseOf }),
      ...(leaseExpiredAt === undefined ? {} : { leaseExpiredAt }),
      sequence: this.next(),
    });
    return this.put(member);
  }
}
