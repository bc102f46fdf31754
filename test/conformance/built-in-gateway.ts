import { join } from 'node:path';
import { createInProcessBus } from '@writ/bus';
import { openServiceTls } from '@writ/identity';
import { createTelemetry } from '@writ/telemetry';
import { createToolGateway, TOOL_GATEWAY_DEFAULTS, type ToolGateway } from '@writ/tool-gateway';
import type { CertificateFiles } from '../../clients/cli/src/commands/gateway/certificates.ts';
import type { PeerAddresses } from '../../clients/cli/src/commands/gateway/test-peers.ts';

/** The built-in gateway, in this process. */
export interface BuiltInGateway {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** Closes the store while calls may be in flight, as a kill would, and restarts the gateway on the stored data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts the built-in gateway on a free port with the tools of the suite.
 * @param tlsFiles files for mutual TLS; default cleartext
 */
export async function startBuiltInGateway(
  dataDir: string,
  addresses: PeerAddresses,
  toolsFile: string,
  tlsFiles?: CertificateFiles,
): Promise<BuiltInGateway> {
  const telemetry = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
  const { log } = telemetry;
  const tls = tlsFiles && openServiceTls({ service: 'tool-gateway', ...tlsFiles, log });
  const start = async (port: number): Promise<ToolGateway> => {
    const gateway = await createToolGateway(
      {
        ...TOOL_GATEWAY_DEFAULTS,
        port,
        dataDir,
        store: { dialect: 'sqlite', file: join(dataDir, 'tool-gateway.db') },
        tools: toolsFile,
        variables: { CONFORMANCE_TOOLS: addresses.tools },
        receiptDelayMs: 0,
        receiptPollMs: 20,
        drainMs: 0,
        flushMs: 0,
      },
      {
        telemetry,
        bus: createInProcessBus({ onError: () => undefined }),
        addressOf: (service) =>
          service === 'supervisor' ? addresses.supervisor : addresses.worker,
        ...(tls && { tls }),
      },
    );
    await gateway.start();
    return gateway;
  };
  let running = await start(0);
  const { address } = running;
  return {
    address,
    restart: async () => {
      await running.store.close();
      await running.stop();
      running = await start(Number(address.split(':')[1]));
    },
    stop: async () => {
      await running.stop();
      tls?.close();
      await telemetry.shutdown();
    },
  };
}
