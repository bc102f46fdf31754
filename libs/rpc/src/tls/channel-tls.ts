import { createSecureContext, type PeerCertificate } from 'node:tls';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import type { TlsFiles } from './tls-files.ts';
import { uriNames } from './uri-names.ts';

/** How a client speaks TLS with one peer. */
export interface ChannelTls {
  /** What new connections are made with; another object whenever the files have changed. */
  credentials(): ChannelCredentials;
  /** The name that is asked for in the handshake; an address may not stand there. */
  readonly serverName: string;
}

/** Whom to expect at the other end. */
export interface ExpectedPeer {
  /** The one URI that its certificate must name; host names are not looked at. */
  readonly uri: string;
  readonly serverName: string;
}

/** Shows the certificate of `files` to a peer, and wants to see that of `expected`. */
export function channelTls(files: TlsFiles, { uri, serverName }: ExpectedPeer): ChannelTls {
  const checkServerIdentity = (_host: string, shown: PeerCertificate): Error | undefined => {
    const uris = uriNames(shown.subjectaltname);
    if (uris.length === 1 && uris[0] === uri) return undefined;
    return new Error(`its certificate names ${uris.join(', ') || 'nobody'} instead of ${uri}`);
  };
  let made: { readonly of: object; readonly credentials: ChannelCredentials } | undefined;
  return {
    serverName,
    credentials() {
      const { current } = files;
      if (made?.of !== current) {
        const context = createSecureContext({ ...current, minVersion: 'TLSv1.3' });
        const verify = { checkServerIdentity };
        made = {
          of: current,
          credentials: credentials.createFromSecureContext(context, verify),
        };
      }
      return made.credentials;
    },
  };
}
