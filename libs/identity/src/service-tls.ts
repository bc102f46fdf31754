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

/** How a service proves to the others who it is, besides its tokens: one certificate for both ends. */
export interface ServiceTls {
  /** Of its own certificate; whoever is of another one is a stranger. */
  readonly trustDomain: string;
  /** For the port on which services call. */
  readonly server: ServerTls;
  /** For calls to a service, which must show the certificate of that name. */
  to(service: ServerName): ChannelTls;
  /** Looks for changed files no more. */
  close(): void;
}

/** What {@link openServiceTls} needs. */
export interface ServiceTlsOptions extends Omit<TlsFilesOptions, 'accept' | 'caFile'> {
  /** Whom the certificate must name. */
  readonly service: ServerName;
  readonly caFile: string;
}

/**
 * Opens the certificate of a service. Its URI says who it is and in which trust domain; changed files
 * must say the same.
 * @throws PreconditionError INVALID_TLS_FILE naming the file, TLS_NAME_MISMATCH
 */
export function openServiceTls({ service, ...options }: ServiceTlsOptions): ServiceTls {
  let trustDomain: string | undefined;
  const files = TlsFiles.open({
    ...options,
    accept: ({ uris }) => {
      const named = readSpiffeId(uris);
      const isFitting =
        named !== undefined && named.trustDomain === (trustDomain ?? named.trustDomain);
      if (!isFitting || named.service !== service)
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
  const names = uris.join(', ') || 'nobody';
  return new PreconditionError(
    'TLS_NAME_MISMATCH',
    `${file} names ${names}, where its one URI must be ${wanted}.`,
    { file },
  );
}
