/** Work that a service does besides serving calls. */
export interface BackgroundWork {
  start(): Promise<void> | void;
  /** Begins nothing more; resolves when the current work has ended. */
  stop(): Promise<void> | void;
}
