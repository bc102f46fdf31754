import { HaltSchema } from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { haltLines } from './halt-text.ts';
import { type ScopeOptions, scopeFrom } from './scope.ts';

/** Options of `writ halts create`. */
export interface CreateOptions extends ClientOptions, FormatOptions, ScopeOptions {
  readonly reason: string;
  readonly endRuns?: boolean;
  readonly requestId?: string;
}

/** Options of `writ halts lift`. */
export interface LiftOptions extends ClientOptions, FormatOptions {
  readonly requestId?: string;
}

/**
 * Halts a run, one of its agents, a tenant, or everything; returns a failure if services have not confirmed the halt
 * yet or its agents are still being parked (HALT_PENDING).
 * @throws InvalidRequestError INVALID_SCOPE
 */
export async function createHalt(options: CreateOptions, io: CliIo): Promise<Exit> {
  const client = openClient(options, io);
  const scope = await scopeFrom(options, client);
  const { reason, endRuns = false, requestId = newId('req') } = options;
  try {
    const { halt } = await client.control.halt({ requestId, scope, reason, endRuns });
    if (halt !== undefined)
      show(io, options, { schema: HaltSchema, value: halt }, () => haltLines(halt));
    return EXIT.success;
  } catch (error) {
    if (!isPending(error)) throw error;
    io.warn(error.message);
    io.warn(`Retry with --request-id ${requestId}.`);
    return EXIT.failure;
  }
}

/** Lifts one halt. */
export async function liftHalt(haltId: string, options: LiftOptions, io: CliIo): Promise<Exit> {
  const { requestId = newId('req') } = options;
  const { halt } = await openClient(options, io).control.resume({ requestId, haltId });
  if (halt !== undefined)
    show(io, options, { schema: HaltSchema, value: halt }, () => haltLines(halt));
  return EXIT.success;
}

function isPending(error: unknown): error is Error & { readonly reason: string } {
  return error instanceof Error && 'reason' in error && error.reason === 'HALT_PENDING';
}
