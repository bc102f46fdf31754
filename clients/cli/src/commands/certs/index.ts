import { isIP } from 'node:net';
import type { CertificateFolderOptions } from '@writ/certs';
import { isTrustDomain, SERVICE_NAMES, TOOL_PROVIDER } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import type { CommandGroup } from '../../command-group.ts';
import { EXIT } from '../../io.ts';

interface CertsOptions {
  readonly trustDomain: string;
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  readonly also?: readonly string[];
  readonly days: string;
  readonly caDays: string;
  readonly renew?: boolean;
}

const DAY_MS = 86_400_000;
const LONGEST_DAYS = 3_650;
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** `writ certs`: an authority for development, and the certificates of the services (SYS-6). */
export const certsCommands: CommandGroup = (program, io, done) => {
  program
    .command('certs')
    .argument('<folder>', 'where ca.crt, ca.key, <service>.crt and <service>.key go')
    .description(
      'Make an authority for development, and a certificate and key for each service, readable by their owner alone.',
    )
    .option('--renew', 'issue new certificates with the authority that the folder has')
    .option('--trust-domain <name>', 'the first part of every name', 'writ.local')
    .option('--dns <name...>', 'a further host name that every certificate is good for')
    .option('--ip <address...>', 'an IP address that every certificate is good for')
    .option('--also <name...>', 'a certificate that names no service, such as for the edge or nats')
    .option('--days <number>', 'how long certificates are good', '7')
    .option('--ca-days <number>', 'how long a new authority is good', '365')
    .action(async (dir: string, options: CertsOptions) => {
      const folder = folderOptions(dir, options);
      const authorityLifeMs = daysFrom('--ca-days', options.caDays);
      // Whoever asks for something else need not wait for the library.
      const { issueInFolder, makeFolder } = await import('@writ/certs');
      const written =
        options.renew === true
          ? await issueInFolder(folder)
          : await makeFolder(folder, authorityLifeMs);
      for (const { certFile, notAfter } of written)
        io.print(`${certFile}  until ${notAfter.toISOString()}`);
      done(EXIT.holds);
    });
};

function folderOptions(dir: string, options: CertsOptions): CertificateFolderOptions {
  const { trustDomain, dns = [], ip = [], also = [], days } = options;
  if (!isTrustDomain(trustDomain))
    throw bad('--trust-domain must be lower-case letters, digits, dots, underscores and hyphens.');
  const noAddress = ip.find((address) => isIP(address) === 0);
  if (noAddress !== undefined) throw bad(`--ip ${noAddress} is no IP address.`);
  const noName = also.find((name) => !NAME.test(name) || name === 'ca' || isTaken(name));
  if (noName !== undefined)
    throw bad(`--also ${noName} must be a name of lower-case letters that is not taken.`);
  return {
    dir,
    trustDomain,
    services: [...SERVICE_NAMES, TOOL_PROVIDER],
    others: also,
    dnsNames: ['localhost', ...dns],
    addresses: ['127.0.0.1', '::1', ...ip],
    lifeMs: daysFrom('--days', days),
  };
}

function isTaken(name: string): boolean {
  return [...SERVICE_NAMES, TOOL_PROVIDER].some((service) => service === name);
}

function daysFrom(option: string, text: string): number {
  const days = Number(text);
  if (days > 0 && days <= LONGEST_DAYS) return days * DAY_MS;
  throw bad(`${option} must be a number of days, at most ${LONGEST_DAYS}.`);
}

function bad(sentence: string): InvalidRequestError {
  return new InvalidRequestError('BAD_OPTION', sentence);
}
