import { PreconditionError } from '@writ/kernel';
import {
  type ChannelTls,
  channelTls,
  type ServerTls,
  TlsFiles,
  type TlsFilesOptions,
} from '@writ/rpc';
import type { ServerName } from './names.ts';
import { readSpiffeId, spiffeId } from './spiffe.ts';

/** The certificate of a service, used by its server and its clients. */
export interface ServiceTls {
  /** The trust domain of the certificate; peers of other domains are rejected. */
  readonly trustDomain: string;
  /** TLS settings of the internal port. */
  readonly server: ServerTls;
  /** Returns the TLS settings for calls to `service`; the called server must present the certificate of `service`. */
  to(service: ServerName): ChannelTls;
  /** Stops polling the certificate files for changes. */
  close(): void;
}

/** Options of {@link openServiceTls}. */
export interface ServiceTlsOptions extends Omit<TlsFilesOptions, 'accept' | 'caFile'> {
  /** The service that the certificate must name. */
  readonly service: ServerName;
  readonly caFile: string;
}

/**
 * Loads the certificate of a service. The URI of the certificate names the service and the trust domain; reloaded files
 * must have the same URI.
 * @throws PreconditionError INVALID_TLS_FILE naming the file, TLS_NAME_MISMATCH
 */
export function openServiceTls({ service, ...options }: ServiceTlsOptions): ServiceTls {
  let trustDomain: string | undefined;
  const files = TlsFiles.open({
    ...options,
    accept: ({ uris }) => {
      const named = readSpiffeId(uris);
      const isSameDomain =
        named !== undefined && named.trustDomain === (trustDomain ?? named.trustDomain);
      if (!isSameDomain || named.service !== service)
        throw nameMismatch(
          options.certFile,
          uris,
          spiffeId(trustDomain ?? '<trust domain>', service),
        );
      trustDomain = named.trustDomain;
    },
  });
  const domain = trustDomain ?? '';
  const channels = new Map<ServerName, ChannelTls>();
  return {
    trustDomain: domain,
    server: { files, clientCertificates: 'required' },
    to(peer) {
      const channel =
        channels.get(peer) ??
        channelTls(files, { uri: spiffeId(domain, peer), serverName: `${peer}.writ` });
      channels.set(peer, channel);
      return channel;
    },
    close: () => files.close(),
  };
}

function nameMismatch(file: string, uris: readonly string[], wanted: string): PreconditionError {
  const names = uris.join(', ') || 'no URI';
  return new PreconditionError(
    'TLS_NAME_MISMATCH',
    `${file} names ${names}; its only URI must be ${wanted}.`,
    { file },
  );
}
