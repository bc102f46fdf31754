import type { Clock, ToolFunction } from '@writ/kernel';
import type { EgressAllowance } from '../../domain/egress/egress-rules.ts';
import type { OfferedTool } from '../offered-tool.ts';

/** The run that a note belongs to. */
export interface RunKey {
  readonly tenant: string;
  readonly runId: string;
}

/** The scratch space of runs: texts by name, until the run's retention ends them. */
export interface Notes {
  list(run: RunKey): Promise<readonly { readonly name: string; readonly sizeBytes: number }[]>;
  /** Undefined when there is none of this name. */
  read(run: RunKey, name: string): Promise<string | undefined>;
  /**
   * Writes a note, or replaces it.
   * @throws ToolFailure naming the limit, or when the run has ended
   */
  write(run: RunKey, name: string, text: string): Promise<void>;
}

/** What built-in tools work with. */
export interface BuiltinParts {
  readonly clock: Clock;
  readonly egress: EgressAllowance;
  readonly notes: Notes;
}

/** A built-in tool: how it describes itself, and how it is made. */
export interface BuiltinTool extends OfferedTool {
  create(parts: BuiltinParts): ToolFunction;
}
