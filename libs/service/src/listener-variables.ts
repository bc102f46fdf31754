import { variable } from '@writ/config';
import type { ServiceName } from '@writ/identity';
import { defaultPort, variableName } from './names.ts';

/** The settings that every service has: where it listens, where its keys and state are, and how old a key gets. */
export function listenerVariables(service: ServiceName) {
  return {
    host: variable.string(variableName(service, 'HOST'), {
      default: '127.0.0.1',
      about: 'the address on which services call',
    }),
    port: variable.port(variableName(service, 'PORT'), {
      default: defaultPort(service),
      about: 'the port on which services call',
    }),
    dataDir: variable.string('WRIT_DATA', {
      default: '.writ',
      about: 'the folder for keys and state',
    }),
    keyRotationMs: variable.duration('WRIT_KEY_ROTATION', {
      optional: true,
      min: 1_000,
      about: 'how long a signing key is used before the next one',
    }),
  };
}
