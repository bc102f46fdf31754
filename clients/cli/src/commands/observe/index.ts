import { OBSERVED_SUBJECTS, OBSERVER } from '@writ/bus';
import { followBus, followEvents } from '@writ/hooks';
import { InvalidRequestError } from '@writ/kernel';
import { openObserverBus, readNatsAccess } from '@writ/service';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CliIo, type CommandGroup, EXIT } from '../../io.ts';
import { createRunObserver } from './run-observer.ts';

interface ObserveOptions extends ClientOptions {
  readonly logs?: string;
}

/** `writ observe`: the cost of each agent when it ends, and with --logs a log of each run (HK-3). */
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
      const hooks = createRunObserver({ ...io, ...(options.logs && { folder: options.logs }) });
      if (runId === undefined) await observeAll(io, hooks);
      else await followEvents(openClient(options, io).runs.watchRun({ runId }), hooks);
      done(EXIT.success);
    });
};

/** Observes all runs until SIGINT or SIGTERM. */
async function observeAll(
  { env, print, warn }: CliIo,
  hooks: Parameters<typeof followBus>[1],
): Promise<void> {
  const nats = readNatsAccess(env);
  if (nats === undefined)
    throw new InvalidRequestError(
      'OBSERVER_SOURCE_MISSING',
      'WRIT_NATS_URL is not set. Set it and WRIT_NATS_PASSWORD to observe all runs, or name a run.',
    );
  const stopped = Promise.withResolvers<void>();
  const stop = (): void => stopped.resolve();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  let problem = '';
  const bus = await openObserverBus(nats, (error) => {
    const sentence = error instanceof Error ? error.message : String(error);
    // Each attempt to connect fails in the same way.
    if (sentence !== problem) warn(sentence);
    problem = sentence;
  });
  try {
    await followBus(bus, hooks, { subject: OBSERVED_SUBJECTS, durable: OBSERVER });
    const when = problem === '' ? '' : ' as soon as NATS is reachable';
    print(`Observing runs${when}. Stop with Ctrl-C.`);
    await stopped.promise;
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
    await bus.close();
  }
}
