import { createSecureContext, type PeerCertificate } from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import type { TlsFiles } from './tls-files.ts';
import { uriNames } from './uri-names.ts';

/** TLS settings of a client for one peer. */
export interface ChannelTls {
  /** The credentials of new connections; a different object after the files have changed. */
  credentials(): ChannelCredentials;
  /** The server name (SNI) of the handshake; must not be an IP address. */
  readonly serverName: string;
}

/** The expected identity of a peer. */
export interface ExpectedPeer {
  /** The URI name of the peer. Its certificate must contain this URI name and no other; host names are ignored. */
  readonly uri: string;
  readonly serverName: string;
}

/** Creates mutual TLS settings: presents the certificate of `files` and verifies the expected peer. */
export function channelTls(files: TlsFiles, { uri, serverName }: ExpectedPeer): ChannelTls {
  const checkServerIdentity = (_host: string, shown: PeerCertificate): Error | undefined => {
    const uris = uriNames(shown.subjectaltname);
    if (uris.length === 1 && uris[0] === uri) return undefined;
    return new Error(`its certificate names ${uris.join(', ') || 'no URI'} instead of ${uri}`);
  };
  let cached: { readonly of: object; readonly credentials: ChannelCredentials } | undefined;
  return {
    serverName,
    credentials() {
      const { current } = files;
      if (cached?.of !== current) {
        const context = createSecureContext({ ...current, minVersion: 'TLSv1.3' });
        const verify = { checkServerIdentity };
        cached = {
          of: current,
          credentials: credentials.createFromSecureContext(context, verify),
        };
      }
      return cached.credentials;
    },
  };
}
