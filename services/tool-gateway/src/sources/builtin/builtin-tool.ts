import type { Clock, ToolFunction } from '@writ/kernel';
import type { EgressAllowance } from '@writ/service';
import type { Notes } from '../../domain/notes.ts';
import type { OfferedTool } from '../source.ts';

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
