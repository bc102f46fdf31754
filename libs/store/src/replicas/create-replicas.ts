import { newId } from '@writ/kernel';
import type { Kysely } from 'kysely';
import { settingsOf } from './leadership.ts';
import type { Claim, Replicas } from './replicas.ts';
import { SessionReplicas } from './session-replicas.ts';

/** Creates the {@link Replicas} of this process for the store of `db`. */
export function createReplicas<DB>(db: Kysely<DB>): Replicas {
  const settings = settingsOf(db);
  return settings === undefined ? new SingleProcess() : new SessionReplicas(settings);
}

/** Replicas of a single-process store: every other replica id in the store belongs to a previous process. */
class SingleProcess implements Replicas {
  readonly id = newId('rep');
  readonly shared = false;
  readonly #claimed = new Set<string>();

  async start(): Promise<void> {
    // There are no other replicas.
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
    // There are no other replicas.
  }

  onHint(): () => void {
    return () => undefined;
  }

  async stop(): Promise<void> {
    this.#claimed.clear();
  }
}
