import type { Clock, RunKey, ToolFunction } from '@writ/kernel';
import type { EgressAllowance } from '../../domain/egress/egress-rules.ts';
import type { OfferedTool } from '../source.ts';

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

/** Dependencies of the built-in tools. */
export interface BuiltinParts {
  readonly clock: Clock;
  readonly egress: EgressAllowance;
  readonly notes: Notes;
}

/** A built-in tool: its definition and its factory. */
export interface BuiltinTool extends OfferedTool {
  create(parts: BuiltinParts): ToolFunction;
}
