import { ConfigError, type Environment, readEnv, variable } from '@writ/config';

/** The certificate files of a service. */
export interface TlsAccess {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** The transport between services. */
export interface PeerSettings {
  /** Absent for cleartext. */
  readonly tls?: TlsAccess;
  /** Where an internal listener may accept cleartext; default `loopback`. */
  readonly cleartext?: 'loopback' | 'anywhere';
}

/**
 * Reads the transport between services.
 * @throws ConfigError if only some of the files are set
 */
export function readPeerSettings(env: Environment): PeerSettings {
  const { certFile, keyFile, caFile, allowCleartext } = readEnv(env, {
    certFile: file('WRIT_TLS_CERT_FILE', 'the certificate of the service'),
    keyFile: file('WRIT_TLS_KEY_FILE', 'the key of that certificate'),
    caFile: file('WRIT_TLS_CA_FILE', 'the certificate authorities of the other services'),
    allowCleartext: variable.boolean('WRIT_ALLOW_CLEARTEXT', {
      default: false,
      about: 'whether the internal listener accepts cleartext from other hosts',
    }),
  });
  const cleartext = allowCleartext ? 'anywhere' : 'loopback';
  if (certFile !== undefined && keyFile !== undefined && caFile !== undefined)
    return { tls: { certFile, keyFile, caFile }, cleartext };
  if ([certFile, keyFile, caFile].every((name) => name === undefined)) return { cleartext };
  throw new ConfigError('The environment', [
    'WRIT_TLS_CERT_FILE, WRIT_TLS_KEY_FILE and WRIT_TLS_CA_FILE must be set together; set all three or none.',
  ]);
}

function file(name: string, about: string) {
  return variable.string(name, { optional: true, about: `a PEM file: ${about}` });
}
