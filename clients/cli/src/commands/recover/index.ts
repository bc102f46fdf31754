import { SERVICE_NAMES } from '@writ/identity';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import type { KeptStore, StoreFinding } from '@writ/service';
import { type CliIo, type CommandGroup, EXIT, type Exit } from '../../io.ts';

interface RecoverOptions {
  readonly data?: string;
  readonly service?: readonly string[];
  readonly halt?: string;
  readonly yes?: boolean;
}

/** `writ recover`: continues with databases that went back in time or are lost (BD-4). */
export const recoverCommands: CommandGroup = (program, io, done) => {
  program
    .command('recover')
    .description(
      'Report the databases of a data folder that went back in time or are lost; with --yes, continue with what is left.',
    )
    .option('--data <folder>', 'the data folder (WRIT_DATA, .writ)')
    .option(
      '--service <name...>',
      'recover these as well, such as those with a PostgreSQL database',
    )
    .option('--halt <id>', 'the halt of everything, if the supervisor is not in this data folder')
    .option('--yes', 'end the runs that had not ended, and start with everything halted')
    .action(async (options: RecoverOptions) => done(await recover(options, io)));
};

const FOUND: Readonly<Record<StoreFinding, string>> = {
  current: 'is the latest one',
  behind: 'is an older copy',
  replaced: 'is another one',
  missing: 'is missing',
  empty: 'is empty',
  unreadable: 'is corrupt: move it and its -wal file away before the start',
  unread: 'is checked when the service starts',
};

async function recover(
  { data, service = [], halt, yes }: RecoverOptions,
  io: CliIo,
): Promise<Exit> {
  const unknown = service.find((name) => !SERVICE_NAMES.some((known) => known === name));
  if (unknown !== undefined) {
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `--service must be one of ${SERVICE_NAMES.join(', ')}, not ${unknown}.`,
      { option: '--service' },
    );
  }
  const dataDir = data ?? (io.env.WRIT_DATA || '.writ');
  // Loaded on demand, for the start time of other commands.
  const { inspectStores, orderRecovery } = await import('@writ/service');
  const kept = inspectStores(io.env, dataDir);
  for (const store of kept) io.print(lineOf(store));
  const lost = kept.filter(
    (store) =>
      service.includes(store.service) ||
      (store.finding !== 'current' && store.finding !== 'unread'),
  );
  if (lost.length === 0) {
    io.print(`Nothing to recover in ${dataDir}.`);
    return EXIT.success;
  }
  const names = lost.map((store) => store.service).join(', ');
  if (yes !== true) {
    io.print(
      `To continue without what ${names} lost, stop the platform and run this with --yes: unfinished runs end, and everything is halted.`,
    );
    return EXIT.failure;
  }
  const haltId = await orderRecovery(lost, kept, { dataDir, clock: systemClock, haltId: halt });
  io.print(
    `The next start of ${names} continues with what is left. Everything is halted, and unfinished runs end; compare the outside with the audit record, then run: writ resume ${haltId}`,
  );
  return EXIT.success;
}

function lineOf({ service, finding, mark, seen }: KeptStore): string {
  const at = finding === 'behind' ? `, at mark ${mark}` : '';
  return `${service}: ${seen.store} ${FOUND[finding]}${at}; seen at mark ${seen.mark} at ${seen.seenAt}.`;
}
