/** An exclusive claim of one replica. */
export interface Claim {
  /** Whether the claim is valid; a broken connection ends it. */
  isHeld(): boolean;
  release(): Promise<void>;
}

/** The processes that share a store: liveness, claims, and hints between them (SYS-5). */
export interface Replicas {
  /** Unique id of this process, which rows reference as their owner. */
  readonly id: string;
  /** Whether other processes can share the store. */
  readonly shared: boolean;
  /**
   * Joins the replicas; resolves when the others see this process as alive.
   * @throws UnavailableError STORE_UNREACHABLE
   */
  start(): Promise<void>;
  /** Whether the other replicas detect this process as alive. If not, they may take over its work. */
  isVisible(): boolean;
  /** Returns the replicas among `ids` that have not been alive for a few seconds. */
  findDead(ids: Iterable<string>): Promise<ReadonlySet<string>>;
  /**
   * Claims `name` for this process. Returns undefined while another process holds the claim, or while this process has
   * not released an earlier claim of the same name, even if a broken connection has ended that claim. The claims of a
   * dead process are released.
   */
  claim(name: string): Promise<Claim | undefined>;
  /** Notifies the other replicas of a change. A hint may be lost, so listeners also poll. */
  hint(topic: string): void;
  /**
   * Calls `listener`, which must not throw, for each hint of another process on the topic. Returns a function that
   * unsubscribes.
   */
  onHint(topic: string, listener: () => void): () => void;
  /** Leaves the replicas and releases all claims. */
  stop(): Promise<void>;
}
