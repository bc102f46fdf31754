import { isIP } from 'node:net';
import {
  beginReplacement,
  type CertificateFolderOptions,
  createFolder,
  finishReplacement,
  issueInFolder,
  issueReplacement,
  trustDomainOf,
  type WrittenCertificate,
} from '@writ/certs';
import { isTrustDomain, SERVICE_NAMES, TOOL_PROVIDER } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { shellWord } from '../../output/shell.ts';
import { showData } from '../../output/show.ts';
import { type CertsOptions, DEFAULT_DAYS } from './options.ts';

const DAY_MS = 86_400_000;
const LONGEST_DAYS = 3_650;
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Writes a CA and certificates to a folder, or runs one step of a CA rotation, and prints what it wrote.
 * @throws InvalidRequestError INVALID_OPTION, and what the steps throw
 */
export async function writeCertificates(
  dir: string,
  options: CertsOptions,
  io: CliIo,
): Promise<Exit> {
  const folder = folderOptions(dir, options);
  const authorityLifeMs = daysFrom('--ca-days', options.caDays);
  const { trustDomain = trustDomainOf(dir) ?? 'writ.local' } = options;
  const all = { ...folder, trustDomain };
  if (options.replaceCa !== undefined)
    show(await replace(options, all, authorityLifeMs), options, io);
  else if (options.renew === true) show({ certificates: await issueInFolder(all) }, options, io);
  else show({ certificates: await createFolder(all, authorityLifeMs) }, options, io);
  return EXIT.success;
}

/** The certificates that a command wrote, and the next steps for the operator. */
interface Written {
  readonly certificates: readonly WrittenCertificate[];
  readonly notes?: readonly string[];
}

/** Runs one step of a rotation; the notes name the next command, with the options of the certificates. */
async function replace(
  options: CertsOptions,
  folder: CertificateFolderOptions,
  authorityLifeMs: number,
): Promise<Written> {
  const { dir } = folder;
  const { replaceCa: step } = options;
  const next = (what: string, command: string) => {
    const words = ['writ', 'certs', dir, '--replace-ca', command, ...repeatedOptions(options)];
    return `After every process has reloaded ${what}, run: ${words.map(shellWord).join(' ')}`;
  };
  if (step === 'begin') {
    await beginReplacement(folder, authorityLifeMs);
    const contents = `${dir}/ca.crt now contains the new CA and the old CA.`;
    return { certificates: [], notes: [contents, next('it', 'issue')] };
  }
  if (step === 'issue') {
    const certificates = await issueReplacement(folder);
    return { certificates, notes: [next('its new certificate', 'finish')] };
  }
  finishReplacement(folder);
  return { certificates: [], notes: [`${dir}/ca.crt now contains only the new CA.`] };
}

/** Returns the certificate options to repeat in the command of the next step. */
function repeatedOptions({ trustDomain, dns, ip, also, days }: CertsOptions): readonly string[] {
  const lists = { '--dns': dns, '--ip': ip, '--also': also };
  return [
    ...(trustDomain === undefined ? [] : ['--trust-domain', trustDomain]),
    ...Object.entries(lists).flatMap(([option, values]) =>
      values === undefined ? [] : [option, ...values],
    ),
    ...(days === DEFAULT_DAYS ? [] : ['--days', days]),
  ];
}

function show({ certificates, notes = [] }: Written, options: FormatOptions, io: CliIo): void {
  const written = certificates.map(({ name, certFile, keyFile, notAfter }) => ({
    ...{ name, certFile, keyFile, notAfter },
  }));
  showData(io, options, { certificates: written, notes }, () => [
    ...certificates.map(({ certFile, notAfter }) => `${certFile}  until ${notAfter.toISOString()}`),
    ...notes,
  ]);
}

function folderOptions(
  dir: string,
  { trustDomain, dns = [], ip = [], also = [], days }: CertsOptions,
): Omit<CertificateFolderOptions, 'trustDomain'> {
  if (trustDomain !== undefined && !isTrustDomain(trustDomain))
    throw bad('--trust-domain must be lower-case letters, digits, dots, underscores and hyphens.');
  const invalidAddress = ip.find((address) => isIP(address) === 0);
  if (invalidAddress !== undefined) throw bad(`--ip ${invalidAddress} is not an IP address.`);
  const invalidName = also.find((name) => !NAME.test(name) || isTaken(name));
  if (invalidName !== undefined)
    throw bad(
      `--also ${invalidName} must be an unused name of lower-case letters, digits and hyphens.`,
    );
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
