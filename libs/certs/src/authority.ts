// Required by @peculiar/x509, which uses decorators.
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** A certificate and its private key, both in PEM. */
export interface CertificateWithKey {
  readonly cert: string;
  readonly key: string;
}

/** Options of {@link createAuthority}. */
export interface AuthorityOptions {
  /** A descriptive name. */
  readonly commonName: string;
  readonly lifeMs: number;
  /** Default: now. */
  readonly now?: Date;
}

/** Options of {@link issueCertificate}. */
export interface CertificateOptions extends AuthorityOptions {
  /** The SPIFFE ID, for certificates of services. */
  readonly uri?: string;
  readonly dnsNames?: readonly string[];
  readonly addresses?: readonly string[];
}

const KEYS = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;
/** Backdates new certificates, so that they are valid on machines with slow clocks. */
const BACKDATED_MS = 5 * 60_000;
const SERIAL_BYTES = 16;

/** Creates an authority with an EC P-256 key, which may sign end-entity certificates only. */
export async function createAuthority(options: AuthorityOptions): Promise<CertificateWithKey> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...commonFields(options),
    keys,
    signingAlgorithm: SIGNING,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return await withKey(certificate, keys);
}

/**
 * Issues a certificate with a new EC P-256 key, for servers and clients. It expires no later than the
 * authority.
 * @throws Error when the key of the authority does not match its certificate, or either is malformed
 */
export async function issueCertificate(
  authority: CertificateWithKey,
  options: CertificateOptions,
): Promise<CertificateWithKey> {
  const issuer = new X509Certificate(authority.cert);
  const keys = await generateKeys();
  const { notAfter, ...others } = commonFields(options);
  const certificate = await X509CertificateGenerator.create({
    ...others,
    notAfter: new Date(Math.min(notAfter.getTime(), issuer.notAfter.getTime())),
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey: await privateKeyOf(authority.key),
    signingAlgorithm: SIGNING,
    extensions: await extensions(options, issuer, keys.publicKey),
  });
  if (!(await certificate.verify({ publicKey: issuer, signatureOnly: true })))
    throw new Error('the key of the authority does not match its certificate');
  return await withKey(certificate, keys);
}

async function extensions(
  { uri, dnsNames = [], addresses = [] }: CertificateOptions,
  issuer: X509Certificate,
  publicKey: CryptoKey,
): Promise<Extension[]> {
  const names: JsonGeneralName[] = [
    ...(uri === undefined ? [] : [{ type: 'url' as const, value: uri }]),
    ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
    ...addresses.map((value) => ({ type: 'ip' as const, value })),
  ];
  return [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
    new SubjectAlternativeNameExtension(names),
    await SubjectKeyIdentifierExtension.create(publicKey),
    await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
}

function commonFields({ commonName, lifeMs, now = new Date() }: AuthorityOptions) {
  return {
    // Positive and unpredictable.
    serialNumber: `01${randomBytes(SERIAL_BYTES).toString('hex')}`,
    name: [{ CN: [commonName] }, { O: ['Writ'] }],
    subject: [{ CN: [commonName] }, { O: ['Writ'] }],
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter: new Date(now.getTime() + lifeMs),
  };
}

async function generateKeys(): Promise<CryptoKeyPair> {
  return await crypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
}

async function privateKeyOf(pem: string): Promise<CryptoKey> {
  const [der] = PemConverter.decode(pem);
  if (der === undefined) throw new Error('the key of the authority is not in PEM format');
  return await crypto.subtle.importKey('pkcs8', der, KEYS, false, ['sign']);
}

async function withKey(
  certificate: X509Certificate,
  { privateKey }: CryptoKeyPair,
): Promise<CertificateWithKey> {
  const der = await crypto.subtle.exportKey('pkcs8', privateKey);
  return {
    cert: `${certificate.toString('pem')}\n`,
    key: `${PemConverter.encode(der, 'PRIVATE KEY')}\n`,
  };
}
