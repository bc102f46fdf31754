import { variable } from '@writ/config';
import { DEFAULT_CLOCK_LEEWAY_MS, type ServiceName } from '@writ/identity';
import { defaultPort, variableName } from './names.ts';

/** The variables of every service: its listener, its data directory, the rotation of its keys and its clock. */
export function listenerVariables(service: ServiceName) {
  return {
    host: variable.string(variableName(service, 'HOST'), {
      default: '127.0.0.1',
      about: 'the address of the listener for services',
    }),
    port: variable.port(variableName(service, 'PORT'), {
      default: defaultPort(service),
      about: 'the port of the listener for services',
    }),
    dataDir: variable.string('WRIT_DATA', {
      default: '.writ',
      about: 'the directory of keys and state',
    }),
    keyRotationMs: variable.duration('WRIT_KEY_ROTATION', {
      optional: true,
      min: 1_000,
      about: 'the rotation interval of signing keys',
    }),
    clockLeewayMs: variable.duration('WRIT_CLOCK_LEEWAY', {
      default: DEFAULT_CLOCK_LEEWAY_MS,
      min: 0,
      max: 600_000,
      about: 'the tolerated difference between the clocks of two services',
    }),
  };
}
