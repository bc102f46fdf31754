import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { omitUndefined, PreconditionError } from '@writ/kernel';
import { uriNames } from './uri-names.ts';

/** The paths of the PEM files. */
export interface TlsFileNames {
  /** The certificate, followed by its intermediate certificates, if any. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities that issue peer certificates; omitted when peers present no certificate. */
  readonly caFile?: string | undefined;
}

/** A certificate with its key and the trusted authorities. */
export interface TlsMaterial extends Pick<SecureContextOptions, 'cert' | 'key' | 'ca'> {
  /** The URI names of the certificate. */
  readonly uris: readonly string[];
  /**
   * The lifetime of the certificate in the chain that expires first: the leaf certificate or an intermediate
   * certificate.
   */
  readonly own: Lifetime;
  /** The lifetime of each authority. */
  readonly authorities: readonly Lifetime[];
}

/** The validity period of a certificate. */
export interface Lifetime {
  /** The first 16 hexadecimal digits of the SHA-256 fingerprint. */
  readonly fingerprint: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** The contents of the files. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string | undefined;
}

/**
 * Parses and validates the contents of the files.
 * @throws PreconditionError INVALID_TLS_FILE naming the file and the problem
 */
export function readMaterial(names: TlsFileNames, texts: TlsTexts, now: Date): TlsMaterial {
  const chain = certificatesOf(names.certFile, texts.cert);
  const [certificate] = chain;
  if (certificate.validToDate <= now)
    throw badTlsFile(names.certFile, `expired at ${certificate.validToDate.toISOString()}`);
  if (!certificate.checkPrivateKey(keyOf(names.keyFile, texts.key)))
    throw badTlsFile(names.keyFile, `does not match the certificate of ${names.certFile}`);
  const { ca } = texts;
  const authorities = names.caFile === undefined ? [] : certificatesOf(names.caFile, ca ?? '');
  const material = {
    cert: texts.cert,
    key: texts.key,
    ...omitUndefined({ ca }),
    uris: uriNames(certificate.subjectAltName),
    own: chain
      .map(lifetimeOf)
      .reduce((one, other) => (other.notAfter < one.notAfter ? other : one)),
    authorities: authorities.map(lifetimeOf),
  };
  try {
    createSecureContext(material);
  } catch (cause) {
    throw badTlsFile(names.certFile, 'cannot be used with its key and authorities', cause);
  }
  return material;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

function certificatesOf(file: string, pem: string): [X509Certificate, ...X509Certificate[]] {
  const [first, ...others] = pem.match(CERTIFICATE) ?? [];
  if (first === undefined) throw badTlsFile(file, 'contains no certificate in PEM format');
  const read = (text: string): X509Certificate => {
    try {
      return new X509Certificate(text);
    } catch (cause) {
      throw badTlsFile(file, 'contains an invalid certificate', cause);
    }
  };
  return [read(first), ...others.map(read)];
}

function lifetimeOf({ fingerprint256, validFromDate, validToDate }: X509Certificate): Lifetime {
  return {
    fingerprint: fingerprint256.replaceAll(':', '').slice(0, 16).toLowerCase(),
    notBefore: validFromDate,
    notAfter: validToDate,
  };
}

function keyOf(file: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    // The cause is omitted: it may quote the key.
    throw badTlsFile(file, 'contains no private key in PEM format');
  }
}

/** The error for a file that cannot be used. */
export function badTlsFile(file: string, why: string, cause?: unknown): PreconditionError {
  return new PreconditionError('INVALID_TLS_FILE', `${file} ${why}.`, { file }, { cause });
}
