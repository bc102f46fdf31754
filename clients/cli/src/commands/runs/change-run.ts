import { RunSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { SignalRunResponseSchema } from '@writ/contracts/writ/run/v1/run_service_pb';
import { newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { runFields } from './run-text.ts';

interface ChangeOptions extends ClientOptions, FormatOptions {
  readonly requestId?: string;
}

/** Options of `writ runs cancel`. */
export interface CancelOptions extends ChangeOptions {
  readonly reason: string;
}

/** Options of `writ runs signal`. */
export interface SignalOptions extends ChangeOptions {
  readonly agent?: string;
}

/** A signal to an agent. */
interface Signal {
  readonly name: string;
  readonly payloadJson: string;
}

/** Ends a run with all its agents. */
export async function cancelRun(runId: string, options: CancelOptions, io: CliIo): Promise<Exit> {
  const { requestId = newId('req'), reason } = options;
  const { run } = await openClient(options, io).runs.cancelRun({ requestId, runId, reason });
  if (run !== undefined) show(io, options, { schema: RunSchema, value: run }, () => runFields(run));
  return EXIT.success;
}

/** Sends a signal to an agent. */
export async function signalRun(
  runId: string,
  { name, payloadJson }: Signal,
  options: SignalOptions,
  io: CliIo,
): Promise<Exit> {
  const { requestId = newId('req'), agent: agentInstance = '' } = options;
  const value = await openClient(options, io).runs.signalRun({
    ...{ requestId, runId, agentInstance, name, payloadJson },
  });
  show(io, options, { schema: SignalRunResponseSchema, value }, () => [
    value.accepted ? `Signal ${name} is accepted.` : `Signal ${name} was accepted before.`,
  ]);
  return EXIT.success;
}
