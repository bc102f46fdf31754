/** The most recent ids. */
export interface RecentIds {
  has(id: string): boolean;
  add(id: string): void;
}

/** Creates an empty set of the last `capacity` ids. */
export function createRecentIds(capacity: number): RecentIds {
  const ids = new Set<string>();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > capacity && oldest !== undefined) ids.delete(oldest);
    },
  };
}
