import { readEnv, variable } from '@writ/config';
import { type PeerSettings, readPeerSettings } from '@writ/service';
import { LOG_LEVELS, type LogLevel } from '@writ/telemetry';

/** Settings of the refund tools as a separate process. */
export interface ProviderConfig extends PeerSettings {
  readonly host: string;
  readonly port: number;
  /** Folder of the ledger. */
  readonly dataDir: string;
  /** `host:port` of the gateway; other callers are rejected. */
  readonly gatewayAddress: string;
  readonly logLevel: LogLevel;
}

/**
 * Reads the settings of the provider process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readProviderConfig(env: NodeJS.ProcessEnv = process.env): ProviderConfig {
  const own = readEnv(env, {
    host: variable.string('REFUND_TOOLS_HOST', {
      default: '127.0.0.1',
      about: 'the address of the listener for the gateway',
    }),
    port: variable.port('REFUND_TOOLS_PORT', {
      default: 50_061,
      about: 'the port of the listener for the gateway',
    }),
    dataDir: variable.string('WRIT_DATA', {
      default: '.writ',
      about: 'the folder of the ledger',
    }),
    gatewayAddress: variable.string('WRIT_TOOL_GATEWAY_ADDRESS', {
      default: '127.0.0.1:50054',
      about: 'the address from which the keys of the gateway are fetched',
    }),
    logLevel: variable.enum('WRIT_LOG_LEVEL', LOG_LEVELS, {
      default: 'info',
      about: 'log level',
    }),
  });
  return { ...own, ...readPeerSettings(env) };
}
