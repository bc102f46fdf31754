/** What a process holds for itself alone among all that share the store. */
export interface Claim {
  /** Whether it is certain still; a connection that breaks takes it along. */
  isHeld(): boolean;
  release(): Promise<void>;
}

/** The processes that share a store: who of them lives, who does what, and hints between them (SYS-5). */
export interface Replicas {
  /** This process, unlike any other before or after; rows name it as the one that works on them. */
  readonly id: string;
  /** Whether there can be others at all. */
  readonly shared: boolean;
  /**
   * Joins them; resolves when the others can see it.
   * @throws UnavailableError STORE_UNREACHABLE
   */
  start(): Promise<void>;
  /** Whether the others see it now. While they do not, they may take up what it was working on. */
  isVisible(): boolean;
  /** Those among `ids` that have ended: nobody has seen them for a while (a few seconds). */
  findDead(ids: Iterable<string>): Promise<ReadonlySet<string>>;
  /** Claims `name` for this process; undefined while another has it. A process that ends has nothing any more. */
  claim(name: string): Promise<Claim | undefined>;
  /** Tells the others that something changed; may be lost, so whoever listens also looks now and then. */
  hint(topic: string): void;
  /** Calls `listener` at each hint of another process at this topic; it must not throw. Returns how to stop. */
  onHint(topic: string, listener: () => void): () => void;
  /** Leaves; everything that was claimed is free. */
  stop(): Promise<void>;
}
