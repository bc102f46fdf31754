/** Work that a service runs in the background, independent of calls. */
export interface BackgroundWork {
  start(): Promise<void> | void;
  /** Starts no new work; resolves when the current work has ended. */
  stop(): Promise<void> | void;
}
