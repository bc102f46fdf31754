import { isIP } from 'node:net';
import type { CertificateFolderOptions, WrittenCertificate } from '@writ/certs';
import { isTrustDomain, SERVICE_NAMES, TOOL_PROVIDER } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import { Option } from 'commander';
import type { CommandGroup } from '../../command-group.ts';
import { type CliIo, EXIT } from '../../io.ts';

interface CertsOptions {
  readonly trustDomain?: string;
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  readonly also?: readonly string[];
  readonly days: string;
  readonly caDays: string;
  readonly renew?: boolean;
  readonly replaceCa?: (typeof STEPS)[number];
}

const DAY_MS = 86_400_000;
const LONGEST_DAYS = 3_650;
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Of replacing an authority, so that nobody is refused meanwhile. */
const STEPS = ['begin', 'issue', 'finish'] as const;

/** `writ certs`: an authority for development, and the certificates of the services (SYS-6). */
export const certsCommands: CommandGroup = (program, io, done) => {
  program
    .command('certs')
    .argument('<folder>', 'where ca.crt, ca.key, <service>.crt and <service>.key go')
    .description(
      'Make an authority for development, and a certificate and key for each service, readable by their owner alone.',
    )
    .option('--renew', 'issue new certificates with the authority that the folder has')
    .addOption(
      new Option('--replace-ca <step>', 'replace the authority, one step after the other')
        .choices(STEPS)
        .conflicts('renew'),
    )
    .option(
      '--trust-domain <name>',
      'the first part of every name (what the folder has, or writ.local)',
    )
    .option('--dns <name...>', 'a further host name that every certificate is good for')
    .option('--ip <address...>', 'an IP address that every certificate is good for')
    .option('--also <name...>', 'a certificate that names no service, such as for the edge or nats')
    .option('--days <number>', 'how long certificates are good', '7')
    .option('--ca-days <number>', 'how long a new authority is good', '365')
    .action(async (dir: string, options: CertsOptions) => {
      const folder = folderOptions(dir, options);
      const authorityLifeMs = daysFrom('--ca-days', options.caDays);
      // Whoever asks for something else need not wait for the library.
      const certs = await import('@writ/certs');
      const { trustDomain = certs.trustDomainOf(dir) ?? 'writ.local' } = options;
      const all = { ...folder, trustDomain };
      if (options.replaceCa !== undefined)
        await replace(options.replaceCa, all, authorityLifeMs, io);
      else if (options.renew === true) show(await certs.issueInFolder(all), io);
      else show(await certs.makeFolder(all, authorityLifeMs), io);
      done(EXIT.holds);
    });
};

/** Takes one step, and says when the next one may come. */
async function replace(
  step: (typeof STEPS)[number],
  folder: CertificateFolderOptions,
  authorityLifeMs: number,
  { print }: CliIo,
): Promise<void> {
  const { beginReplacement, finishReplacement, issueReplacement } = await import('@writ/certs');
  const { dir } = folder;
  const next = (what: string, command: string) =>
    print(`Once every process has taken ${what}: writ certs ${dir} --replace-ca ${command}`);
  if (step === 'begin') {
    await beginReplacement(folder, authorityLifeMs);
    print(`${dir}/ca.crt now holds a new authority beside the old.`);
    next('it', 'issue');
  } else if (step === 'issue') {
    show(await issueReplacement(folder), { print });
    next('its new certificate', 'finish');
  } else {
    finishReplacement(folder);
    print(`${dir}/ca.crt now holds the new authority alone.`);
  }
}

function show(written: readonly WrittenCertificate[], { print }: Pick<CliIo, 'print'>): void {
  for (const { certFile, notAfter } of written)
    print(`${certFile}  until ${notAfter.toISOString()}`);
}

function folderOptions(
  dir: string,
  { trustDomain, dns = [], ip = [], also = [], days }: CertsOptions,
): Omit<CertificateFolderOptions, 'trustDomain'> {
  if (trustDomain !== undefined && !isTrustDomain(trustDomain))
    throw bad('--trust-domain must be lower-case letters, digits, dots, underscores and hyphens.');
  const noAddress = ip.find((address) => isIP(address) === 0);
  if (noAddress !== undefined) throw bad(`--ip ${noAddress} is no IP address.`);
  const noName = also.find((name) => !NAME.test(name) || isTaken(name));
  if (noName !== undefined)
    throw bad(`--also ${noName} must be a name of lower-case letters that is not taken.`);
  return {
    dir,
    services: [...SERVICE_NAMES, TOOL_PROVIDER],
    others: also,
    dnsNames: ['localhost', ...dns],
    addresses: ['127.0.0.1', '::1', ...ip],
    lifeMs: daysFrom('--days', days),
  };
}

function isTaken(name: string): boolean {
  return [...SERVICE_NAMES, TOOL_PROVIDER, 'ca', 'ca-next'].some((taken) => taken === name);
}

function daysFrom(option: string, text: string): number {
  const days = Number(text);
  if (days > 0 && days <= LONGEST_DAYS) return days * DAY_MS;
  throw bad(`${option} must be a number of days, at most ${LONGEST_DAYS}.`);
}

function bad(sentence: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_OPTION', sentence);
}
