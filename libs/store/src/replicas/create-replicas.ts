import { newId } from '@writ/kernel';
import type { Kysely } from 'kysely';
import { settingsOf } from './leadership.ts';
import type { Claim, Replicas } from './replicas.ts';
import { SessionReplicas } from './session-replicas.ts';

/** The processes that share the store that `db` reads. */
export function createReplicas<DB>(db: Kysely<DB>): Replicas {
  const settings = settingsOf(db);
  return settings === undefined ? new Alone() : new SessionReplicas(settings);
}

/** A store of one process: whoever else is named in it was there before, and has ended. */
class Alone implements Replicas {
  readonly id = newId('rep');
  readonly shared = false;
  readonly #claimed = new Set<string>();

  async start(): Promise<void> {
    // Nobody looks.
  }

  isVisible(): boolean {
    return true;
  }

  async findDead(ids: Iterable<string>): Promise<ReadonlySet<string>> {
    return new Set([...ids].filter((id) => id !== this.id));
  }

  async claim(name: string): Promise<Claim | undefined> {
    if (this.#claimed.has(name)) return undefined;
    this.#claimed.add(name);
    let held = true;
    return {
      isHeld: () => held,
      release: async () => {
        if (held) this.#claimed.delete(name);
        held = false;
      },
    };
  }

  hint(): void {
    // Nobody listens.
  }

  onHint(): () => void {
    return () => undefined;
  }

  async stop(): Promise<void> {
    this.#claimed.clear();
  }
}
