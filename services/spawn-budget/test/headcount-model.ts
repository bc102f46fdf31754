import type { Priority, SpawnBudget } from '@writ/kernel';
import type { PoolEvent } from '../src/domain/pool/events.ts';

/** One agent, as somebody would note it on paper. */
interface Person {
  id: string;
  weight: number;
  where: 'running' | 'sleeping' | 'paused' | 'away' | 'gone';
  /** Place in line; 0 = not in line. */
  ticket: number;
  /** When it loses its desk. */
  until: number;
  epoch: bigint;
  /** Paused by demotion, its desk left free. */
  yielded: boolean;
}

const NEVER = Number.POSITIVE_INFINITY;

/**
 * The headcount rules as plain lists and loops, written from the words of the rules and not from the
 * reducer: what the property test holds the reducer against.
 */
export class HeadcountModel {
  /** In the order of hiring; the root first. */
  readonly people: Person[];
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
    this.people = [];
    this.#hire('root', weight);
  }

  /** Lets `event` happen; answers what an acquire, a release or a renewal is told. */
  happen(event: PoolEvent, now: number): string {
    this.#now = now;
    this.#lapse();
    const told = this.#apply(event);
    // Nobody else can run, and a desk is free: somebody in line takes it.
    if (!this.people.some(({ where }) => where === 'running') && this.#room() > 0) this.#callIn();
    return told;
  }

  /** Who holds a desk. */
  holders(): Person[] {
    return this.people.filter(({ where }) => where === 'running' || where === 'sleeping');
  }

  /** Who is in line, first in line first. */
  line(): Person[] {
    const line = this.people.filter(({ ticket }) => ticket !== 0);
    return line.sort((a, b) => (a.weight === b.weight ? a.ticket - b.ticket : b.weight - a.weight));
  }

  #apply(event: PoolEvent): string {
    switch (event.type) {
      case 'acquire':
        return this.#acquire(event.agent.instance, event.priority, event.depth);
      case 'release':
        return this.#release(event.instance);
      case 'renew': {
        const person = this.#find(event.instance);
        if (person === undefined) return 'UNKNOWN_AGENT';
        if (person.where === 'gone') return 'gone';
        if (event.epoch < person.epoch) return 'STALE_EPOCH';
        person.epoch = event.epoch;
        if (!this.#over()) this.#renew(person, event.intent);
        return person.where;
      }
      case 'reprioritize':
        return this.#reprioritize(event.instance, event.priority);
      case 'close':
        this.closed = true;
        for (const person of this.people) this.#leave(person, 'gone');
        return 'closed';
      case 'expire':
        return 'expired';
    }
  }

  #acquire(id: string, weight: Priority, depth: number): string {
    if (this.#over()) return 'over';
    const known = this.#find(id);
    if (known !== undefined) return known.where === 'gone' ? 'final' : known.where;
    const { maxDepth = NEVER, maxTotalSpawns = NEVER } = this.budget;
    if (depth > maxDepth) return this.#refuse('max_depth');
    if (this.spawns >= maxTotalSpawns) return this.#refuse('max_total_spawns');
    if (this.#room() <= 0) {
      const victim = this.#victim(weight);
      if (victim === undefined) return this.#refuse('max_agents');
      this.#pause(victim);
    }
    this.spawns += 1;
    this.#hire(id, weight);
    return 'running';
  }

  #release(id: string): string {
    const person = this.#find(id);
    if (person === undefined || person.where === 'gone' || id === 'root') return 'nothing';
    this.#leave(person, 'gone');
    this.#fill();
    return 'released';
  }

  #renew(person: Person, intent: 'run' | 'suspend' | 'park'): void {
    const { where } = person;
    if (intent === 'run' && (where === 'running' || where === 'sleeping')) this.#seat(person);
    if (intent === 'suspend' && where === 'running') this.#sleep(person);
    if (where !== 'away') return;
    if (intent === 'suspend') person.ticket = 0;
    else if (this.#room() > 0) this.#seat(person);
    else {
      const victim = intent === 'run' ? this.#victim(person.weight) : undefined;
      if (victim !== undefined) {
        this.#pause(victim);
        this.#seat(person);
      } else if (person.ticket === 0) {
        this.#tickets += 1;
        person.ticket = this.#tickets;
      }
    }
  }

  #reprioritize(id: string, weight: Priority): string {
    if (this.#over()) return 'over';
    const person = this.#find(id);
    if (person === undefined) return 'unknown';
    if (person.where === 'gone') return 'final';
    const before = person.weight;
    person.weight = weight;
    if (weight < before && weight < 2) {
      if (person.where !== 'running' || id === 'root' || this.#room() > 0) return person.where;
      const [next] = this.line();
      const others = this.people.some((other) => other !== person && other.where === 'running');
      if (next === undefined && !others) return person.where;
      this.#pause(person);
      if (next !== undefined) this.#seat(next);
      else person.yielded = true;
    }
    if (weight > before && weight >= 2 && person.where === 'paused') {
      const victim = this.#room() > 0 ? undefined : this.#victim(weight);
      if (victim !== undefined) this.#pause(victim);
      if (this.#room() > 0) this.#seat(person);
      else person.ticket = Math.min(0, ...this.people.map(({ ticket }) => ticket)) - 1;
    }
    return person.where;
  }

  #lapse(): void {
    const late = this.people.filter(({ until }) => until <= this.#now);
    for (const person of late) {
      if (person.id === 'root') this.#sleep(person);
      else this.#leave(person, 'away');
    }
    if (late.length > 0) this.#fill();
  }

  #fill(): void {
    while (this.#room() > 0 && this.#callIn());
  }

  #callIn(): boolean {
    const [first] = this.#over() ? [] : this.line();
    if (first !== undefined) this.#seat(first);
    return first !== undefined;
  }

  #hire(id: string, weight: number): void {
    const person: Person = {
      ...{ id, weight, where: 'away', ticket: 0, until: NEVER, epoch: 0n, yielded: false },
    };
    this.people.push(person);
    this.#seat(person);
  }

  #seat(person: Person): void {
    const until = Math.min(this.#now + this.#leaseMs, this.#deadline);
    Object.assign(person, { where: 'running', ticket: 0, yielded: false, until });
  }

  #sleep(person: Person): void {
    person.where = 'sleeping';
    person.until = person.id === 'root' ? NEVER : this.#deadline;
  }

  #leave(person: Person, where: 'away' | 'gone'): void {
    Object.assign(person, { where, ticket: 0, yielded: false, until: NEVER });
  }

  #pause(person: Person): void {
    this.pauses += 1;
    this.#tickets += 1;
    Object.assign(person, { where: 'paused', ticket: this.#tickets, until: NEVER });
  }

  #victim(weight: number): Person | undefined {
    if (weight < 4 || !this.budget.allowPreempt) return undefined;
    let victim: Person | undefined;
    for (const person of this.people) {
      if (person.id === 'root' || person.where !== 'running' || person.weight >= weight) continue;
      if (victim === undefined || person.weight < victim.weight) victim = person;
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

  #room(): number {
    return this.budget.maxAgents - this.holders().length;
  }

  #find(id: string): Person | undefined {
    return this.people.find((person) => person.id === id);
  }
}
