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
import { omitUndefined, PreconditionError } from '@writ/kernel';
import { type CertificateWithKey, createAuthority, issueCertificate } from './authority.ts';

/** The certificates of a folder. */
export interface CertificateFolderOptions {
  readonly dir: string;
  /** SPIFFE trust domain of the service certificates: `spiffe://<trust domain>/writ/<service>`. */
  readonly trustDomain: string;
  readonly services: readonly ServerName[];
  /** Names of further certificates, such as those of the edge or a database. */
  readonly others?: readonly string[];
  /** Additional host names of every certificate. */
  readonly dnsNames?: readonly string[];
  /** Additional IP addresses of every certificate. */
  readonly addresses?: readonly string[];
  readonly lifeMs: number;
}

/** The files of a certificate and its key in a folder. */
export interface WrittenCertificate {
  readonly name: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly notAfter: Date;
}

const AUTHORITY = 'ca';

/**
 * Creates a folder with a new authority, and a certificate and key for each name in `services` and `others`. Only the
 * owner can read the files.
 * @param authorityLifeMs lifetime of the authority
 * @throws PreconditionError AUTHORITY_EXISTS when the folder already has an authority, because the certificates of that
 *   authority would become invalid; TRUST_DOMAIN_MISMATCH
 */
export async function createFolder(
  options: CertificateFolderOptions,
  authorityLifeMs: number,
): Promise<readonly WrittenCertificate[]> {
  const { dir } = options;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const { certFile, keyFile } = filesOf(dir, AUTHORITY);
  const existing = [keyFile, certFile].find((file) => existsSync(file));
  if (existing !== undefined) throw authorityExists(existing);
  requireTrustDomain(options);
  const { cert, key } = await newAuthority(options, authorityLifeMs);
  if (!createPrivate(keyFile, key)) throw authorityExists(keyFile);
  replacePrivate(certFile, cert);
  return await issueInFolder(options);
}

/**
 * Replaces the certificates and keys that `services` and `others` name by new ones, issued by the authority of the
 * folder; other certificates in the folder stay unchanged.
 * @throws PreconditionError AUTHORITY_NOT_FOUND when the folder has no authority, AUTHORITY_EXPIRED,
 *   TRUST_DOMAIN_MISMATCH
 */
export async function issueInFolder(
  options: CertificateFolderOptions,
): Promise<readonly WrittenCertificate[]> {
  return await issueBy(readAuthority(options.dir).signing, options);
}

/**
 * Issues new certificates and keys with `authority`.
 * @throws PreconditionError TRUST_DOMAIN_MISMATCH
 */
export async function issueBy(
  authority: CertificateWithKey,
  options: CertificateFolderOptions,
): Promise<readonly WrittenCertificate[]> {
  const { trustDomain, services, others = [] } = options;
  requireTrustDomain(options);
  const written: WrittenCertificate[] = [];
  for (const service of services)
    written.push(await issue(authority, service, options, spiffeId(trustDomain, service)));
  for (const name of others) written.push(await issue(authority, name, options));
  return written;
}

function requireTrustDomain({ dir, trustDomain }: CertificateFolderOptions): void {
  const known = trustDomainOf(dir);
  if (known !== undefined && known !== trustDomain)
    throw new PreconditionError(
      'TRUST_DOMAIN_MISMATCH',
      `The certificates in ${dir} belong to trust domain ${known}; services that use them would reject certificates of ${trustDomain}. Use ${known}, or another folder.`,
      { trust_domain: known },
    );
}

/** Returns the trust domain of a folder, from the supervisor's certificate; undefined when it cannot be read. */
export function trustDomainOf(dir: string): string | undefined {
  const { certFile } = filesOf(dir, 'supervisor');
  try {
    const { subjectAltName = '' } = new X509Certificate(readFileSync(certFile));
    const [, uri = ''] = /URI:([^,]+)/.exec(subjectAltName) ?? [];
    return readSpiffeId([uri])?.trustDomain;
  } catch {
    // A missing or invalid certificate has no trust domain.
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
    ...omitUndefined({ uri }),
  });
  const files = filesOf(dir, name);
  replacePrivate(files.keyFile, key);
  replacePrivate(files.certFile, cert);
  return { name, ...files, notAfter: new X509Certificate(cert).validToDate };
}

/** Creates an authority with a unique name, so that it differs from the authority that it replaces. */
export async function newAuthority(
  { trustDomain }: CertificateFolderOptions,
  lifeMs: number,
): Promise<CertificateWithKey> {
  const commonName = `Writ authority of ${trustDomain} ${randomBytes(4).toString('hex')}`;
  return await createAuthority({ commonName, lifeMs });
}

/** The authorities of a folder. */
export interface FolderAuthorities {
  /** The authority that signs. */
  readonly signing: CertificateWithKey;
  /** Other trusted authorities in PEM, during a replacement. */
  readonly others: readonly string[];
}

/**
 * Reads the authorities of a folder.
 * @throws PreconditionError AUTHORITY_NOT_FOUND, AUTHORITY_EXPIRED
 */
export function readAuthority(dir: string): FolderAuthorities {
  const { certFile, keyFile } = filesOf(dir, AUTHORITY);
  for (const file of [certFile, keyFile]) {
    if (existsSync(file)) continue;
    throw new PreconditionError(
      'AUTHORITY_NOT_FOUND',
      `${file} does not exist, so certificates cannot be renewed; create a new authority in an empty folder.`,
      { file },
    );
  }
  const key = readFileSync(keyFile, 'utf8');
  const all = readFileSync(certFile, 'utf8').match(CERTIFICATE) ?? [];
  const own = all.find((cert) => new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)));
  if (own === undefined)
    throw new PreconditionError(
      'AUTHORITY_NOT_FOUND',
      `${certFile} contains no certificate for the key in ${keyFile}; restore both files, or create a new authority in an empty folder.`,
      { file: certFile },
    );
  const { validToDate } = new X509Certificate(own);
  if (validToDate <= new Date())
    throw new PreconditionError(
      'AUTHORITY_EXPIRED',
      `${certFile} expired at ${validToDate.toISOString()}; create a new authority in an empty folder.`,
      { file: certFile },
    );
  const others = all.filter((cert) => cert !== own);
  return { signing: { cert: `${own}\n`, key }, others: others.map((cert) => `${cert}\n`) };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** Returns the paths of the certificate and the key of this name. */
export function filesOf(dir: string, name: string) {
  return { certFile: join(dir, `${name}.crt`), keyFile: join(dir, `${name}.key`) };
}

function authorityExists(file: string): PreconditionError {
  return new PreconditionError(
    'AUTHORITY_EXISTS',
    `${file} exists: a new authority would invalidate all its certificates. Renew them, replace the authority step by step, or choose another folder.`,
    { file },
  );
}
