import type { RunKey } from '@writ/kernel';

/** Notes of runs: texts by name, kept as the run's retention says. */
export interface Notes {
  list(run: RunKey): Promise<readonly { readonly name: string; readonly sizeBytes: number }[]>;
  /** Undefined when the note does not exist. */
  read(run: RunKey, name: string): Promise<string | undefined>;
  /**
   * Writes a note, or replaces it.
   * @throws ToolFailure naming the limit, or when the run has ended
   */
  write(run: RunKey, name: string, text: string): Promise<void>;
}
