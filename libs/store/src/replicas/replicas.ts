/** An exclusive claim of a process among the replicas. */
export interface Claim {
  /** Whether the claim is valid; a broken connection ends it. */
  isHeld(): boolean;
  release(): Promise<void>;
}

/** The processes that share a store: liveness, claims, and hints between them (SYS-5). */
export interface Replicas {
  /** Unique id of this process; rows name it as their owner. */
  readonly id: string;
  /** Whether other replicas are possible. */
  readonly shared: boolean;
  /**
   * Joins the replicas; resolves when the others see this process as alive.
   * @throws UnavailableError STORE_UNREACHABLE
   */
  start(): Promise<void>;
  /** Whether the others see this process as alive. If not, they may take its work over. */
  isVisible(): boolean;
  /** The dead replicas among `ids`: not alive for a few seconds. */
  findDead(ids: Iterable<string>): Promise<ReadonlySet<string>>;
  /**
   * Claims `name` for this process; undefined while another process holds it, and until this process has released its
   * own earlier claim, even one that a broken connection has ended. The claims of a dead process are released.
   */
  claim(name: string): Promise<Claim | undefined>;
  /** Notifies the others of a change; may be lost, so listeners also poll. */
  hint(topic: string): void;
  /** Calls `listener` for each hint of another process on a topic; it must not throw. Returns how to unsubscribe. */
  onHint(topic: string, listener: () => void): () => void;
  /** Leaves and releases all claims. */
  stop(): Promise<void>;
}
