import { estimateBytes } from './estimate-bytes.ts';

/** Limits of a {@link ByteCache}. */
export interface ByteCacheLimits {
  /** Name of the cache in the metrics `writ.cache.bytes` and `writ.cache.entries`. */
  readonly name: string;
  /** Estimated maximum memory of all entries, bytes; zero disables the cache. */
  readonly maxBytes: number;
  /** Estimated maximum memory of one entry; a larger one is not cached. Default: `maxBytes`. */
  readonly maxEntryBytes?: number;
  /** Maximum number of entries. Default: only the bytes are limited. */
  readonly maxEntries?: number;
  /** Which entries are dropped first. `oldest` makes a lookup cheaper. Default: `least_recently_used`. */
  readonly evicts?: 'least_recently_used' | 'oldest';
}

interface Entry<V> {
  readonly value: V;
  readonly bytes: number;
}

/** The total size of the caches with the same name in this process. */
export interface CacheSize {
  readonly name: string;
  readonly entries: number;
  readonly bytes: number;
}

/** Estimated memory of an entry without key and value. */
const ENTRY_BYTES = 128;

/**
 * A cache that uses a limited number of bytes. `evicts` selects whether the least recently used or the oldest entries
 * are dropped first. Use it for values that can be read or computed again, even if clients choose the keys.
 *
 * @example
 * ```ts
 * import { ByteCache } from '@writ/kernel';
 *
 * const names = new ByteCache<string>({ name: 'names', maxBytes: 1_000_000 });
 * names.set('a', 'Anna');
 * names.get('a');
 * ```
 */
export class ByteCache<V> {
  /** Its name in metrics. */
  readonly name: string;
  readonly #maxBytes: number;
  readonly #maxEntryBytes: number;
  readonly #maxEntries: number;
  readonly #reorders: boolean;
  readonly #entries = new Map<string, Entry<V>>();
  #bytes = 0;

  constructor({ name, maxBytes, maxEntryBytes = maxBytes, ...limits }: ByteCacheLimits) {
    this.name = name;
    this.#maxBytes = maxBytes;
    this.#maxEntryBytes = Math.min(maxBytes, maxEntryBytes);
    this.#maxEntries = limits.maxEntries ?? Number.POSITIVE_INFINITY;
    this.#reorders = limits.evicts !== 'oldest';
    caches.add(this);
  }

  /** The number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** Estimated memory of all entries, bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the value of a key. The entry becomes the most recently used one, except with `evicts: oldest`. */
  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#reorders) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
    return entry.value;
  }

  /**
   * Caches a value and replaces an earlier value of the key.
   * @param valueBytes memory of the value, bytes; default: {@link estimateBytes}
   */
  set(key: string, value: V, valueBytes = estimateBytes(value)): void {
    this.delete(key);
    const bytes = ENTRY_BYTES + 2 * key.length + valueBytes;
    if (bytes > this.#maxEntryBytes) return;
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes && this.#entries.size <= this.#maxEntries) return;
      this.delete(oldest);
    }
  }

  /** Removes a key. */
  delete(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
  }

  /** Removes the keys that begin with `prefix`, such as those of a run that ended. */
  deletePrefix(prefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.delete(key);
  }

  /** Removes everything. */
  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  /** The values, in the order in which they are dropped. */
  *values(): Generator<V> {
    for (const { value } of this.#entries.values()) yield value;
  }
}

/** The caches of this process, as weak references. */
class LiveCaches {
  readonly #refs = new Set<WeakRef<ByteCache<unknown>>>();
  readonly #collected = new FinalizationRegistry<WeakRef<ByteCache<unknown>>>(
    (ref) => void this.#refs.delete(ref),
  );

  add(cache: ByteCache<unknown>): void {
    const ref = new WeakRef(cache);
    this.#refs.add(ref);
    this.#collected.register(cache, ref);
  }

  sizes(): readonly CacheSize[] {
    const sizes = new Map<string, CacheSize>();
    for (const ref of this.#refs) {
      const cache = ref.deref();
      if (cache === undefined) continue;
      const { entries = 0, bytes = 0 } = sizes.get(cache.name) ?? {};
      const { name } = cache;
      sizes.set(name, { name, entries: entries + cache.size, bytes: bytes + cache.bytes });
    }
    return [...sizes.values()];
  }
}

const caches = new LiveCaches();

/** Returns the sizes of the caches of this process by name. */
export function cacheSizes(): readonly CacheSize[] {
  return caches.sizes();
}
