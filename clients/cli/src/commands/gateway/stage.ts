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
import { createRpcServer, type Route, type RpcServer, route, unimplemented } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { Certificates, Played } from './certificates.ts';
import { Issuer } from './issuer.ts';
import { ToolWorld } from './tool-world.ts';
import type { ToolDefinitionRow } from './tools-of-suite.ts';

/** Where the verification listens, each as `host:port`; the port 0 takes a free one. */
export interface StageAddresses {
  readonly supervisor: string;
  readonly worker: string;
  readonly tools: string;
}

/** Everything around a gateway under test: who it trusts, and the tools that it calls. */
export interface Stage {
  readonly supervisor: Issuer;
  readonly worker: Issuer;
  /** Signs in the name of the supervisor, with a key that nobody vouches for. */
  readonly stranger: Issuer;
  readonly world: ToolWorld;
  readonly addresses: StageAddresses;
  /** How often each receipt was reported to the supervisor; acknowledged from the second time on. */
  readonly reported: ReadonlyMap<string, number>;
  /** Refused attempts that were reported, by their ids. */
  readonly refusals: ReadonlyMap<string, RefusedAttempt>;
  close(): Promise<void>;
}

/**
 * Starts what a gateway under test needs beside it: KeyService of a supervisor and of a worker,
 * ReportReceipts, and the tools. Nobody but the gateway may call the last two.
 * @param gatewayAddress where the gateway is asked for its keys
 * @param certificates left out, all of it is in cleartext
 */
export async function openStage(
  { supervisor: supervisorAt, worker: workerAt, tools: toolsAt }: StageAddresses,
  gatewayAddress: () => string,
  definitions: readonly ToolDefinitionRow[],
  certificates: Certificates | undefined,
): Promise<Stage> {
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
  const serve = async (service: Played, at: string, routes: Route[]): Promise<string> => {
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
    const notHere = unimplemented('This supervisor only verifies a gateway.');
    const addresses = {
      supervisor: await serve('supervisor', supervisorAt, [
        supervisor.route(),
        route(SupervisionService, {
          getManifest: notHere,
          spawnChild: notHere,
          endChild: notHere,
          refreshTokens: notHere,
          reportOutcome: notHere,
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
    const stranger = new Issuer('supervisor');
    return { supervisor, worker, stranger, world, addresses, reported, refusals, close };
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
