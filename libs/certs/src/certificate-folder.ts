import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createPrivate,
  readSpiffeId,
  replacePrivate,
  type ServerName,
  spiffeId,
} from '@writ/identity';
import { PreconditionError } from '@writ/kernel';
import { type CertificateWithKey, createAuthority, issueCertificate } from './authority.ts';

/** Which certificates go into a folder. */
export interface CertificateFolderOptions {
  readonly dir: string;
  /** First part of every name: `spiffe://<trust domain>/writ/<service>`. */
  readonly trustDomain: string;
  readonly services: readonly ServerName[];
  /** Certificates for whoever is none of the services, such as the edge or a database. */
  readonly others?: readonly string[];
  /** Host names that every certificate is good for as well. */
  readonly dnsNames?: readonly string[];
  /** IP addresses that every certificate is good for as well. */
  readonly addresses?: readonly string[];
  readonly lifeMs: number;
}

/** A certificate in a folder, with its key beside it. */
export interface WrittenCertificate {
  readonly name: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly notAfter: Date;
}

const AUTHORITY = 'ca';

/**
 * Makes a folder with a new authority and a certificate and key for each service, readable by their
 * owner alone.
 * @param authorityLifeMs how long the authority is good
 * @throws PreconditionError AUTHORITY_EXISTS when the folder has one: whatever it signed would be void
 */
export async function makeFolder(
  options: CertificateFolderOptions,
  authorityLifeMs: number,
): Promise<readonly WrittenCertificate[]> {
  const { dir } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const { certFile, keyFile } = filesOf(dir, AUTHORITY);
  const existing = [keyFile, certFile].find((file) => existsSync(file));
  if (existing !== undefined) throw authorityExists(existing);
  const { cert, key } = await newAuthority(options, authorityLifeMs);
  if (!createPrivate(keyFile, key)) throw authorityExists(keyFile);
  replacePrivate(certFile, cert);
  return await issueInFolder(options);
}

/**
 * Issues new certificates and keys with the authority of a folder, in place of those that are there.
 * @throws PreconditionError AUTHORITY_NOT_FOUND when the folder has none, AUTHORITY_EXPIRED, TRUST_DOMAIN_MISMATCH
 */
export async function issueInFolder(
  options: CertificateFolderOptions,
): Promise<readonly WrittenCertificate[]> {
  return await issueBy(readAuthority(options.dir).signing, options);
}

/** Issues new certificates and keys with this authority; throws as {@link issueInFolder}. */
export async function issueBy(
  authority: CertificateWithKey,
  options: CertificateFolderOptions,
): Promise<readonly WrittenCertificate[]> {
  const { dir, trustDomain, services, others = [] } = options;
  const known = trustDomainOf(dir);
  if (known !== undefined && known !== trustDomain)
    throw new PreconditionError(
      'TRUST_DOMAIN_MISMATCH',
      `The certificates in ${dir} are of the trust domain ${known}: services that have them would take none of ${trustDomain}.`,
      { trust_domain: known },
    );
  const written: WrittenCertificate[] = [];
  for (const service of services)
    written.push(await issue(authority, service, options, spiffeId(trustDomain, service)));
  for (const name of others) written.push(await issue(authority, name, options));
  return written;
}

/** The trust domain that the certificates of a folder are of; undefined where there are none that can be read. */
export function trustDomainOf(dir: string): string | undefined {
  const { certFile } = filesOf(dir, 'supervisor');
  try {
    const { subjectAltName = '' } = new X509Certificate(readFileSync(certFile));
    const [, uri = ''] = /URI:([^,]+)/.exec(subjectAltName) ?? [];
    return readSpiffeId([uri])?.trustDomain;
  } catch {
    // Whatever is there is of use to nobody.
    return undefined;
  }
}

async function issue(
  authority: CertificateWithKey,
  name: string,
  { dir, dnsNames = [], addresses = [], lifeMs }: CertificateFolderOptions,
  uri?: string,
): Promise<WrittenCertificate> {
  const { cert, key } = await issueCertificate(authority, {
    commonName: name,
    lifeMs,
    dnsNames: [name, ...dnsNames],
    addresses,
    ...(uri !== undefined && { uri }),
  });
  const files = filesOf(dir, name);
  replacePrivate(files.keyFile, key);
  replacePrivate(files.certFile, cert);
  return { name, ...files, notAfter: new X509Certificate(cert).validToDate };
}

/** Makes an authority with a name of its own, so that it is not taken for the one that it replaces. */
export async function newAuthority(
  { trustDomain }: CertificateFolderOptions,
  lifeMs: number,
): Promise<CertificateWithKey> {
  const commonName = `Writ authority of ${trustDomain} ${randomBytes(4).toString('hex')}`;
  return await createAuthority({ commonName, lifeMs });
}

/** The authorities of a folder. */
export interface FolderAuthorities {
  /** The one that signs. */
  readonly signing: CertificateWithKey;
  /** Every other one that is trusted, in PEM: while one replaces another. */
  readonly others: readonly string[];
}

/**
 * Reads whom a folder trusts, and who of them signs.
 * @throws PreconditionError AUTHORITY_NOT_FOUND, AUTHORITY_EXPIRED
 */
export function readAuthority(dir: string): FolderAuthorities {
  const { certFile, keyFile } = filesOf(dir, AUTHORITY);
  for (const file of [certFile, keyFile]) {
    if (existsSync(file)) continue;
    throw new PreconditionError(
      'AUTHORITY_NOT_FOUND',
      `${file} is missing, so nothing can be renewed; make a new authority in an empty folder.`,
      { file },
    );
  }
  const key = readFileSync(keyFile, 'utf8');
  const all = readFileSync(certFile, 'utf8').match(CERTIFICATE) ?? [];
  const own = all.find((cert) => new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)));
  if (own === undefined)
    throw new PreconditionError(
      'AUTHORITY_NOT_FOUND',
      `${certFile} holds no certificate for the key in ${keyFile}.`,
      { file: certFile },
    );
  const { validToDate } = new X509Certificate(own);
  if (validToDate <= new Date())
    throw new PreconditionError(
      'AUTHORITY_EXPIRED',
      `${certFile} expired at ${validToDate.toISOString()}; make a new authority in an empty folder.`,
      { file: certFile },
    );
  const others = all.filter((cert) => cert !== own);
  return { signing: { cert: `${own}\n`, key }, others: others.map((cert) => `${cert}\n`) };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** Where the certificate and the key of this name are. */
export function filesOf(dir: string, name: string) {
  return { certFile: join(dir, `${name}.crt`), keyFile: join(dir, `${name}.key`) };
}

function authorityExists(file: string): PreconditionError {
  return new PreconditionError(
    'AUTHORITY_EXISTS',
    `${file} exists: a new authority would make all certificates of the old one void; renew those, replace it step by step, or choose another folder.`,
    { file },
  );
}
