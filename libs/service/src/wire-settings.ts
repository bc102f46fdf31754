import { ConfigError, type Environment, readEnv, variable } from '@writ/config';

/** The files that prove a service to the others. */
export interface TlsAccess {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** How services speak with each other. */
export interface WireSettings {
  /** Absent when they do so in cleartext. */
  readonly tls?: TlsAccess;
  /** Where a port for services may speak cleartext; default `loopback`. */
  readonly cleartext?: 'loopback' | 'anywhere';
}

/**
 * Reads how services speak with each other.
 * @throws ConfigError when only some of the files are named
 */
export function readWireSettings(env: Environment): WireSettings {
  const { certFile, keyFile, caFile, allowCleartext } = readEnv(env, {
    certFile: file('WRIT_TLS_CERT_FILE', 'the certificate that the service shows to the others'),
    keyFile: file('WRIT_TLS_KEY_FILE', 'the key of that certificate'),
    caFile: file('WRIT_TLS_CA_FILE', 'the authorities that vouch for the other services'),
    allowCleartext: variable.boolean('WRIT_ALLOW_CLEARTEXT', {
      default: false,
      about: 'whether services may be called without TLS from other machines',
    }),
  });
  const cleartext = allowCleartext ? 'anywhere' : 'loopback';
  if (certFile !== undefined && keyFile !== undefined && caFile !== undefined)
    return { tls: { certFile, keyFile, caFile }, cleartext };
  if ([certFile, keyFile, caFile].every((name) => name === undefined)) return { cleartext };
  throw new ConfigError('The environment', [
    'WRIT_TLS_CERT_FILE, WRIT_TLS_KEY_FILE and WRIT_TLS_CA_FILE are only of use together; set all three, or none.',
  ]);
}

function file(name: string, about: string) {
  return variable.string(name, { optional: true, about: `a PEM file: ${about}` });
}
