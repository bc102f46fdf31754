import { readFileSync } from 'node:fs';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { createAuthority, issueCertificate } from '@writ/certs';
import { openServiceTls, type ServiceTls, spiffeId, TOOL_PROVIDER } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import type { ChannelTls } from '@writ/rpc';
import type { Logger } from '@writ/telemetry';
import type { CertificateName } from './table.ts';

/** The services that a verification plays, each with a certificate of its own. */
export const PLAYED = ['supervisor', 'agent-worker', TOOL_PROVIDER] as const;

/** One of {@link PLAYED}. */
export type Played = (typeof PLAYED)[number];

/** Where the certificates are; `{service}` stands for each of {@link PLAYED}. */
export interface CertificateFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** What a verification proves itself with, where services call each other over mutual TLS (SYS-6). */
export interface Certificates {
  readonly trustDomain: string;
  /** For the ports of a service that is played, and for calls of its own. */
  readonly services: Readonly<Record<Played, ServiceTls>>;
  /** For calls to the gateway. */
  toGateway(shown: CertificateName): ChannelTls;
  close(): void;
}

const PLACE = '{service}';
const HOUR_MS = 3_600_000;

/**
 * Opens the certificates of all services that are played.
 * @throws InvalidRequestError when a file name does not say where that of each service is;
 *   PreconditionError INVALID_TLS_FILE or TLS_NAME_MISMATCH naming the file
 */
export async function openCertificates(
  { caFile, certFile, keyFile }: CertificateFiles,
  log: Logger,
): Promise<Certificates> {
  const fileOf = (option: string, pattern: string, service: Played): string => {
    if (pattern.includes(PLACE)) return pattern.replaceAll(PLACE, service);
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `${option} must contain ${PLACE}, which stands for ${PLAYED.join(', ')} in turn: each has its own.`,
      { field: option },
    );
  };
  const opened: ServiceTls[] = [];
  const close = (): void => {
    for (const tls of opened) tls.close();
  };
  const open = (service: Played): ServiceTls => {
    const tls = openServiceTls({
      service,
      certFile: fileOf('--tls-cert-file', certFile, service),
      keyFile: fileOf('--tls-key-file', keyFile, service),
      caFile,
      log,
    });
    opened.push(tls);
    return tls;
  };
  try {
    const services = {
      supervisor: open('supervisor'),
      'agent-worker': open('agent-worker'),
      [TOOL_PROVIDER]: open(TOOL_PROVIDER),
    };
    const { trustDomain } = services.supervisor;
    const outsiders = await strangers(trustDomain, readFileSync(caFile));
    const { serverName } = services.supervisor.to('tool-gateway');
    return {
      trustDomain,
      services,
      toGateway: (shown) =>
        shown === 'stranger' || shown === 'none'
          ? { serverName, credentials: () => outsiders[shown] }
          : services[shown].to('tool-gateway'),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Whoever must not be let in: one who shows nothing, and a supervisor of another authority's making. */
async function strangers(
  trustDomain: string,
  ca: Buffer,
): Promise<Readonly<Record<'stranger' | 'none', ChannelCredentials>>> {
  const life = { lifeMs: HOUR_MS };
  const authority = await createAuthority({ commonName: 'Nobody’s authority', ...life });
  const { cert, key } = await issueCertificate(authority, {
    commonName: 'supervisor',
    uri: spiffeId(trustDomain, 'supervisor'),
    ...life,
  });
  // Whom they reach is not their question.
  const verify = { checkServerIdentity: () => undefined };
  return {
    stranger: credentials.createSsl(ca, Buffer.from(key), Buffer.from(cert), verify),
    none: credentials.createSsl(ca, null, null, verify),
  };
}
