import type { Priority, SpawnBudget } from '@writ/kernel';
import type { PoolEvent } from '../src/domain/pool/events.ts';

/** One agent of the model. */
interface Agent {
  id: string;
  weight: number;
  where: 'running' | 'suspended' | 'paused' | 'waiting' | 'released';
  /** Position in the queue; 0: not queued. */
  ticket: number;
  /** When its slot expires. */
  until: number;
  epoch: bigint;
  /** Paused by a demotion that left its slot free. */
  yielded: boolean;
}

const NEVER = Number.POSITIVE_INFINITY;

/**
 * A model of the headcount rules with plain lists and loops, written from the rules and not from the reducer; the
 * property test compares the reducer with it.
 */
export class HeadcountModel {
  /** In the order of acquisition; the root first. */
  readonly agents: Agent[];
  readonly budget: SpawnBudget;
  spawns = 0;
  pauses = 0;
  refusals = 0;
  closed = false;
  #tickets = 0;
  readonly #deadline: number;
  readonly #leaseMs: number;
  #now: number;

  constructor(budget: SpawnBudget, weight: Priority, deadline: number, leaseMs: number) {
    this.budget = budget;
    this.#deadline = deadline;
    this.#leaseMs = leaseMs;
    this.#now = 0;
    this.agents = [];
    this.#add('root', weight);
  }

  /** Applies an event; returns the result of an acquire, a release or a renewal. */
  apply(event: PoolEvent, now: number): string {
    this.#now = now;
    this.#expire();
    const result = this.#applyEvent(event);
    // A free slot goes to a queued agent if no other agent is running.
    if (!this.agents.some(({ where }) => where === 'running') && this.#freeSlots() > 0)
      this.#resumeNext();
    return result;
  }

  /** The agents that hold a slot. */
  holders(): Agent[] {
    return this.agents.filter(({ where }) => where === 'running' || where === 'suspended');
  }

  /** The queued agents in order. */
  queue(): Agent[] {
    return this.agents
      .filter(({ ticket }) => ticket !== 0)
      .sort((a, b) => (a.weight === b.weight ? a.ticket - b.ticket : b.weight - a.weight));
  }

  #applyEvent(event: PoolEvent): string {
    switch (event.type) {
      case 'acquire':
        return this.#acquire(event.agent.instance, event.priority, event.depth);
      case 'release':
        return this.#release(event.instance);
      case 'renew': {
        const agent = this.#find(event.instance);
        if (agent === undefined) return 'UNKNOWN_AGENT';
        if (agent.where === 'released') return 'released';
        if (event.epoch < agent.epoch) return 'STALE_EPOCH';
        agent.epoch = event.epoch;
        if (!this.#over()) this.#renew(agent, event.intent);
        return agent.where;
      }
      case 'reprioritize':
        return this.#reprioritize(event.instance, event.priority);
      case 'close':
        this.closed = true;
        for (const agent of this.agents) this.#leave(agent, 'released');
        return 'closed';
      case 'expire':
        return 'expired';
    }
  }

  #acquire(id: string, weight: Priority, depth: number): string {
    if (this.#over()) return 'over';
    const known = this.#find(id);
    if (known !== undefined) return known.where === 'released' ? 'final' : known.where;
    const { maxDepth = NEVER, maxTotalSpawns = NEVER } = this.budget;
    if (depth > maxDepth) return this.#refuse('max_depth');
    if (this.spawns >= maxTotalSpawns) return this.#refuse('max_total_spawns');
    if (this.#freeSlots() <= 0) {
      const victim = this.#victim(weight);
      if (victim === undefined) return this.#refuse('max_agents');
      this.#pause(victim);
    }
    this.spawns += 1;
    this.#add(id, weight);
    return 'running';
  }

  #release(id: string): string {
    const agent = this.#find(id);
    if (agent === undefined || agent.where === 'released' || id === 'root') return 'nothing';
    this.#leave(agent, 'released');
    this.#fill();
    return 'released';
  }

  #renew(agent: Agent, intent: 'run' | 'suspend' | 'park'): void {
    const { where } = agent;
    if (intent === 'run' && (where === 'running' || where === 'suspended')) this.#activate(agent);
    if (intent === 'suspend' && where === 'running') this.#suspend(agent);
    if (where !== 'waiting') return;
    if (intent === 'suspend') agent.ticket = 0;
    else if (this.#freeSlots() > 0) this.#activate(agent);
    else {
      const victim = intent === 'run' ? this.#victim(agent.weight) : undefined;
      if (victim !== undefined) {
        this.#pause(victim);
        this.#activate(agent);
      } else if (agent.ticket === 0) {
        this.#tickets += 1;
        agent.ticket = this.#tickets;
      }
    }
  }

  #reprioritize(id: string, weight: Priority): string {
    if (this.#over()) return 'over';
    const agent = this.#find(id);
    if (agent === undefined) return 'unknown';
    if (agent.where === 'released') return 'final';
    const before = agent.weight;
    agent.weight = weight;
    if (weight < before && weight < 2) {
      if (agent.where !== 'running' || id === 'root' || this.#freeSlots() > 0) return agent.where;
      const [next] = this.queue();
      const others = this.agents.some((other) => other !== agent && other.where === 'running');
      if (next === undefined && !others) return agent.where;
      this.#pause(agent);
      if (next !== undefined) this.#activate(next);
      else agent.yielded = true;
    }
    if (weight > before && weight >= 2 && agent.where === 'paused') {
      const victim = this.#freeSlots() > 0 ? undefined : this.#victim(weight);
      if (victim !== undefined) this.#pause(victim);
      if (this.#freeSlots() > 0) this.#activate(agent);
      else agent.ticket = Math.min(0, ...this.agents.map(({ ticket }) => ticket)) - 1;
    }
    return agent.where;
  }

  #expire(): void {
    const expired = this.agents.filter(({ until }) => until <= this.#now);
    for (const agent of expired) {
      if (agent.id === 'root') this.#suspend(agent);
      else this.#leave(agent, 'waiting');
    }
    if (expired.length > 0) this.#fill();
  }

  #fill(): void {
    while (this.#freeSlots() > 0 && this.#resumeNext());
  }

  #resumeNext(): boolean {
    const [first] = this.#over() ? [] : this.queue();
    if (first !== undefined) this.#activate(first);
    return first !== undefined;
  }

  #add(id: string, weight: number): void {
    const agent: Agent = {
      ...{ id, weight, where: 'waiting', ticket: 0, until: NEVER, epoch: 0n, yielded: false },
    };
    this.agents.push(agent);
    this.#activate(agent);
  }

  #activate(agent: Agent): void {
    const until = Math.min(this.#now + this.#leaseMs, this.#deadline);
    Object.assign(agent, { where: 'running', ticket: 0, yielded: false, until });
  }

  #suspend(agent: Agent): void {
    agent.where = 'suspended';
    agent.until = agent.id === 'root' ? NEVER : this.#deadline;
  }

  #leave(agent: Agent, where: 'waiting' | 'released'): void {
    Object.assign(agent, { where, ticket: 0, yielded: false, until: NEVER });
  }

  #pause(agent: Agent): void {
    this.pauses += 1;
    this.#tickets += 1;
    Object.assign(agent, { where: 'paused', ticket: this.#tickets, until: NEVER });
  }

  #victim(weight: number): Agent | undefined {
    if (weight < 4 || !this.budget.allowPreempt) return undefined;
    let victim: Agent | undefined;
    for (const agent of this.agents) {
      if (agent.id === 'root' || agent.where !== 'running' || agent.weight >= weight) continue;
      if (victim === undefined || agent.weight < victim.weight) victim = agent;
    }
    return victim;
  }

  #refuse(cap: string): string {
    this.refusals += 1;
    return cap;
  }

  #over(): boolean {
    return this.closed || this.#now >= this.#deadline;
  }

  #freeSlots(): number {
    return this.budget.maxAgents - this.holders().length;
  }

  #find(id: string): Agent | undefined {
    return this.agents.find((agent) => agent.id === id);
  }
}
