import { readFileSync } from 'node:fs';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { createAuthority, issueCertificate } from '@writ/certs';
import { openServiceTls, type ServiceTls, spiffeId, TOOL_PROVIDER } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import type { ChannelTls } from '@writ/rpc';
import type { Logger } from '@writ/telemetry';
import type { CertificateName } from './table.ts';

/** The services that a verification simulates, each with its own certificate. */
export const SIMULATED_SERVICES = ['supervisor', 'agent-worker', TOOL_PROVIDER] as const;

/** One of {@link SIMULATED_SERVICES}. */
export type SimulatedService = (typeof SIMULATED_SERVICES)[number];

/** Paths of the certificates; `{service}` is replaced by each name in {@link SIMULATED_SERVICES}. */
export interface CertificateFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Certificates of a verification with mutual TLS (SYS-6). */
export interface Certificates {
  readonly trustDomain: string;
  /** For the listeners and the calls of the simulated services. */
  readonly services: Readonly<Record<SimulatedService, ServiceTls>>;
  /** For calls to the gateway. */
  toGateway(shown: CertificateName): ChannelTls;
  close(): void;
}

const SERVICE_PLACEHOLDER = '{service}';
const HOUR_MS = 3_600_000;

/**
 * Opens the certificates of the simulated services.
 * @throws InvalidRequestError for a file name without `{service}`;
 *   PreconditionError INVALID_TLS_FILE or TLS_NAME_MISMATCH naming the file
 */
export async function openCertificates(
  { caFile, certFile, keyFile }: CertificateFiles,
  log: Logger,
): Promise<Certificates> {
  const fileOf = (option: string, pattern: string, service: SimulatedService): string => {
    if (pattern.includes(SERVICE_PLACEHOLDER))
      return pattern.replaceAll(SERVICE_PLACEHOLDER, service);
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `${option} must contain ${SERVICE_PLACEHOLDER}, which is replaced by ${SIMULATED_SERVICES.join(', ')}.`,
      { field: option },
    );
  };
  const opened: ServiceTls[] = [];
  const close = (): void => {
    for (const tls of opened) tls.close();
  };
  const open = (service: SimulatedService): ServiceTls => {
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
    const outsiders = await untrustedCallers(trustDomain, readFileSync(caFile));
    const { serverName } = services.supervisor.to('tool-gateway');
    return {
      trustDomain,
      services,
      toGateway: (shown) =>
        shown === 'untrusted' || shown === 'none'
          ? { serverName, credentials: () => outsiders[shown] }
          : services[shown].to('tool-gateway'),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Credentials that the gateway must reject: no certificate, and a supervisor certificate of another CA. */
async function untrustedCallers(
  trustDomain: string,
  ca: Buffer,
): Promise<Readonly<Record<'untrusted' | 'none', ChannelCredentials>>> {
  const life = { lifeMs: HOUR_MS };
  const authority = await createAuthority({ commonName: 'Untrusted CA', ...life });
  const { cert, key } = await issueCertificate(authority, {
    commonName: 'supervisor',
    uri: spiffeId(trustDomain, 'supervisor'),
    ...life,
  });
  // The server's name is not checked.
  const verify = { checkServerIdentity: () => undefined };
  return {
    untrusted: credentials.createSsl(ca, Buffer.from(key), Buffer.from(cert), verify),
    none: credentials.createSsl(ca, null, null, verify),
  };
}
