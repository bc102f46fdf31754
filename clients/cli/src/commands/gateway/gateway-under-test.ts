import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { createTrust, createVerifier, type Verifier } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { type ClosableRpcClient, createRpcClient, type RpcClientOptions } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { Certificates } from './certificates.ts';
import type { CertificateName } from './table.ts';

/** A gateway under test, and the verifier of its receipts. */
export interface GatewayUnderTest {
  readonly address: string;
  readonly verifier: Verifier;
  /** Client options with a certificate; the certificate is ignored in cleartext. */
  as(shown: CertificateName): RpcClientOptions;
  /** A client without a token; calls set it in their headers. */
  client(shown: CertificateName): ClosableRpcClient<typeof ToolGatewayService>;
  /** Credentials of the supervisor for grpc-js clients. */
  readonly bare: { readonly credentials: ChannelCredentials; readonly serverName?: string };
  close(): void;
}

const TIMEOUT_MS = 15_000;

/** Connects to the gateway under test. */
export function connectGateway(
  address: string,
  certificates: Certificates | undefined,
): GatewayUnderTest {
  const telemetry = createTelemetry({ service: 'writ-verify', logLevel: 'silent' });
  const trust = createTrust({
    addresses: { 'tool-gateway': address },
    telemetry,
    tls: certificates?.services.supervisor,
  });
  const clients = new Map<CertificateName, ClosableRpcClient<typeof ToolGatewayService>>();
  const as = (shown: CertificateName): RpcClientOptions => ({
    address,
    telemetry,
    timeoutMs: TIMEOUT_MS,
    tls: certificates?.toGateway(shown),
    // A call whose TLS handshake must be rejected is not retried. Other calls are retried, because after a restart they
    // may fail to connect although the health check succeeds.
    retry: { maxAttempts: shown === 'none' || shown === 'untrusted' ? 1 : 100 },
  });
  const tls = certificates?.toGateway('supervisor');
  return {
    address,
    verifier: createVerifier({ trust, clock: systemClock }),
    as,
    client(shown) {
      const client = clients.get(shown) ?? createRpcClient(ToolGatewayService, as(shown));
      clients.set(shown, client);
      return client;
    },
    bare:
      tls === undefined
        ? { credentials: credentials.createInsecure() }
        : { credentials: tls.credentials(), serverName: tls.serverName },
    close: () => {
      for (const client of clients.values()) client.close();
      trust.close();
    },
  };
}
