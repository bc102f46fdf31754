import { ByteCache, sha256Hex } from '@writ/kernel';
import type { OpenRun, ProxyPeers, RunQuery } from '../../peers/peers.ts';

interface Known {
  readonly run: Promise<OpenRun>;
  /** Undefined while the call to the supervisor is in flight. */
  runId: string | undefined;
  /** Expiry on the monotonic clock, in milliseconds. */
  until: number;
}

/** Maximum memory of the cache, and the estimated memory of one entry without its cache key, bytes. */
const MAX_BYTES = 8_000_000;
const RUN_BYTES = 512;

/**
 * Caches for a few seconds the run of each agent key, conversation and run id, so that most requests need no call to
 * the supervisor (AP-1). Stores only the SHA-256 of the agent key.
 */
export class KeyRunCache {
  readonly #peers: Pick<ProxyPeers, 'openRun'>;
  readonly #keepMs: number;
  readonly #known = new ByteCache<Known>({ name: 'key_runs', maxBytes: MAX_BYTES });

  constructor(peers: Pick<ProxyPeers, 'openRun'>, keepMs: number) {
    this.#peers = peers;
    this.#keepMs = keepMs;
  }

  /**
   * Returns the run of an agent key for the conversation or run id in the query. Concurrent requests share one call.
   * @throws what ProxyPeers.openRun throws
   */
  async of(query: RunQuery): Promise<OpenRun> {
    const name = nameOf(query);
    const known = this.#known.get(name);
    if (known !== undefined && known.until > performance.now()) return await known.run;
    const entry: Known = {
      run: this.#peers.openRun(query),
      runId: undefined,
      until: Number.POSITIVE_INFINITY,
    };
    this.#known.set(name, entry, RUN_BYTES);
    try {
      const run = await entry.run;
      entry.runId = run.key.runId;
      entry.until = performance.now() + this.#keepMs;
      return run;
    } catch (error) {
      if (this.#known.get(name) === entry) this.#known.delete(name);
      throw error;
    }
  }

  /** Removes an ended run from the cache, unless a newer run has replaced it there. */
  forget(query: RunQuery, { key: { runId } }: OpenRun): void {
    const name = nameOf(query);
    if (this.#known.get(name)?.runId === runId) this.#known.delete(name);
  }
}

function nameOf({ apiKey, conversation, runId }: RunQuery): string {
  return `${sha256Hex(apiKey)}/${conversation}/${runId}`;
}
