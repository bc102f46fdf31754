import { OBSERVED_SUBJECTS, OBSERVER } from '@writ/bus';
import { followBus } from '@writ/hooks';
import { InvalidRequestError } from '@writ/kernel';
import { openObserverBus, readNatsAccess } from '@writ/service';
import type { CliIo } from '../../io.ts';

/**
 * Observes all runs until SIGINT or SIGTERM.
 * @throws InvalidRequestError OBSERVER_SOURCE_MISSING
 */
export async function observeAll(
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
    // Failed reconnects repeat the same error; warns only when the error changes.
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
