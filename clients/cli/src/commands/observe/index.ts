import { withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import type { ObserveOptions } from './observe-runs.ts';

/** `writ observe`: prints the cost of each agent when it ends, and with --logs writes a log of each run (HK-3). */
export const observeCommands: CommandGroup = (program, io, done) => {
  withClientOptions(program.command('observe'))
    .argument(
      '[run-id]',
      'a run to follow to its end with the public API; default: all runs, from NATS',
    )
    .description(
      'Print the cost of agents when they end; with --logs, also write a log of each run.',
    )
    .option('--logs <folder>', 'append the events of each run to <run-id>.jsonl in this folder')
    .action(async (runId: string | undefined, options: ObserveOptions) => {
      const { observeRuns } = await import('./observe-runs.ts');
      done(await observeRuns(runId, options, io));
    });
};
