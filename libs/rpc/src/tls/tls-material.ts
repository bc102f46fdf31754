import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { PreconditionError } from '@writ/kernel';
import { uriNames } from './uri-names.ts';

/** Where the PEM files are. */
export interface TlsFileNames {
  /** The certificate, followed by those between it and the authority, if any. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities that vouch for peers; left out where no peer shows a certificate. */
  readonly caFile?: string | undefined;
}

/** A certificate with its key, and whom to believe. */
export interface TlsMaterial extends Pick<SecureContextOptions, 'cert' | 'key' | 'ca'> {
  /** The URIs that the certificate names its owner by. */
  readonly uris: readonly string[];
  /** Of the certificate, or of one between it and the authority that ends sooner. */
  readonly own: Lifetime;
  /** Of each authority. */
  readonly authorities: readonly Lifetime[];
}

/** How long a certificate is good. */
export interface Lifetime {
  /** First 16 digits of the SHA-256 over the certificate, in hex. */
  readonly fingerprint: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** What the files hold. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string | undefined;
}

/**
 * Material of what was read.
 * @throws PreconditionError INVALID_TLS_FILE naming the file and what is wrong with it
 */
export function readMaterial(names: TlsFileNames, texts: TlsTexts, now: Date): TlsMaterial {
  const chain = certificatesOf(names.certFile, texts.cert);
  const [certificate] = chain;
  if (certificate.validToDate <= now)
    throw badTlsFile(names.certFile, `expired at ${certificate.validToDate.toISOString()}`);
  if (!certificate.checkPrivateKey(keyOf(names.keyFile, texts.key)))
    throw badTlsFile(names.keyFile, `holds another key than that of ${names.certFile}`);
  const { ca } = texts;
  const authorities = names.caFile === undefined ? [] : certificatesOf(names.caFile, ca ?? '');
  const material = {
    cert: texts.cert,
    key: texts.key,
    ...(ca !== undefined && { ca }),
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
  if (first === undefined) throw badTlsFile(file, 'holds no certificate in PEM');
  const read = (text: string): X509Certificate => {
    try {
      return new X509Certificate(text);
    } catch (cause) {
      throw badTlsFile(file, 'holds a certificate that cannot be read', cause);
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
    // The reason may quote the text, which is a secret.
    throw badTlsFile(file, 'holds no private key in PEM');
  }
}

/** The error for a file that cannot be used. */
export function badTlsFile(file: string, why: string, cause?: unknown): PreconditionError {
  return new PreconditionError('INVALID_TLS_FILE', `${file} ${why}.`, { file }, { cause });
}
