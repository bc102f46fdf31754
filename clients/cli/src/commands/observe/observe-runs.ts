import { followEvents } from '@writ/hooks';
import { UnavailableError } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { watchFailed } from '../runs/follow.ts';
import { createRunObserver } from './run-observer.ts';

/** Options of `writ observe`. */
export interface ObserveOptions extends ClientOptions {
  readonly logs?: string;
}

/** Prints the cost of the agents of one run, or of all runs, when they end. */
export async function observeRuns(
  runId: string | undefined,
  options: ObserveOptions,
  io: CliIo,
): Promise<Exit> {
  const hooks = createRunObserver({ ...io, ...(options.logs && { folder: options.logs }) });
  if (runId === undefined) {
    // Imported on demand, because following one run does not use NATS.
    const { observeAll } = await import('./observe-all.ts');
    await observeAll(io, hooks);
  } else {
    const { runs } = openClient(options, io);
    try {
      await followEvents(runs.watchRun({ runId }), hooks);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      return watchFailed(runId, `writ observe ${runId}`, error, io);
    }
  }
  return EXIT.success;
}
