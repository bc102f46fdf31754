import {
  type RefusedAttempt,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolProviderService } from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import {
  createTrust,
  createVerifier,
  internalGate,
  readReceipt,
  TOOL_PROVIDER,
} from '@writ/identity';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import { createRpcServer, partialRoute, type Route, type RpcServer, route } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { Certificates, SimulatedService } from './certificates.ts';
import { Issuer } from './issuer.ts';
import type { ToolDefinitionRow } from './suite-tools.ts';
import { ToolWorld } from './tool-world.ts';

/** Listeners of the verification, each as `host:port`; port 0 selects a free port. */
export interface PeerAddresses {
  readonly supervisor: string;
  readonly worker: string;
  readonly tools: string;
}

/** Peers of a gateway under test: the services that it trusts, and the tools that it calls. */
export interface TestPeers {
  readonly supervisor: Issuer;
  readonly worker: Issuer;
  /** Signs as the supervisor with an unknown key. */
  readonly impostor: Issuer;
  readonly world: ToolWorld;
  readonly addresses: PeerAddresses;
  /** Number of reports by receipt; receipts are acknowledged from the second report on. */
  readonly reported: ReadonlyMap<string, number>;
  /** Reported refusals by id. */
  readonly refusals: ReadonlyMap<string, RefusedAttempt>;
  close(): Promise<void>;
}

/**
 * Starts the peers of a gateway under test: KeyService of a supervisor and of a worker, ReportReceipts and the tools.
 * Only the gateway may call the last two.
 * @param gatewayAddress address of the gateway's KeyService
 * @param certificates undefined selects cleartext
 */
export async function openTestPeers(
  { supervisor: supervisorAt, worker: workerAt, tools: toolsAt }: PeerAddresses,
  gatewayAddress: () => string,
  definitions: readonly ToolDefinitionRow[],
  certificates: Certificates | undefined,
): Promise<TestPeers> {
  const telemetry = createTelemetry({ service: 'writ-verify', logLevel: 'silent' });
  const trust = createTrust({
    addresses: () => ({ 'tool-gateway': gatewayAddress() }),
    telemetry,
    tls: certificates?.services.supervisor,
  });
  const verifier = createVerifier({ trust, clock: systemClock });
  const supervisor = new Issuer('supervisor');
  const worker = new Issuer('agent-worker');
  const world = new ToolWorld();
  const reported = new Map<string, number>();
  const refusals = new Map<string, RefusedAttempt>();
  const servers: RpcServer[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close(0)));
    trust.close();
    await telemetry.shutdown();
  };
  const serve = async (service: SimulatedService, at: string, routes: Route[]): Promise<string> => {
    const gate = internalGate({
      service,
      verifier,
      enforceSlotGrants: false,
      trustDomain: certificates?.trustDomain,
    });
    const tls = certificates?.services[service].server;
    const server = await createRpcServer({ ...hostAndPort(at), routes, gate, telemetry, tls });
    servers.push(server);
    server.setServing(true);
    return server.address;
  };
  try {
    const addresses = {
      supervisor: await serve('supervisor', supervisorAt, [
        supervisor.route(),
        partialRoute(SupervisionService, {
          reportReceipts: async ({ receipts, refusals: attempts }) => {
            const acknowledgedReceiptIds: string[] = [];
            for (const token of receipts) {
              const times = (reported.get(token) ?? 0) + 1;
              reported.set(token, times);
              if (times >= 2) acknowledgedReceiptIds.push((await readReceipt(verifier, token)).id);
            }
            const acknowledgedRefusalIds = attempts.map(({ refusalId }) => refusalId);
            for (const attempt of attempts) refusals.set(attempt.refusalId, attempt);
            world.changed();
            return { acknowledgedReceiptIds, acknowledgedRefusalIds };
          },
        }),
      ]),
      worker: await serve('agent-worker', workerAt, [worker.route()]),
      tools: await serve(TOOL_PROVIDER, toolsAt, [
        route(ToolProviderService, {
          describeTools: async () => ({
            tools: definitions.map(({ name, description, input_schema }) => ({
              name,
              description,
              inputSchemaJson: JSON.stringify(input_schema),
            })),
          }),
          invoke: (request, call) => world.invoke(request, call),
        }),
      ]),
    };
    const impostor = new Issuer('supervisor');
    return { supervisor, worker, impostor, world, addresses, reported, refusals, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(address) ?? [];
  if (host !== undefined && port !== undefined) return { host, port: Number(port) };
  throw new InvalidRequestError('INVALID_ADDRESS', `${address} is not host:port.`, {
    field: address,
  });
}
