import { keyRoute } from '@writ/identity';
import { PermissionDeniedError } from '@writ/kernel';
import { TlsFiles } from '@writ/rpc';
import { createEdge } from '@writ/rpc/edge';
import { defineService, type ServiceHost, Sweeper } from '@writ/service';
import { KeyRunCache } from './app/access/key-run-cache.ts';
import { SubAgents } from './app/access/sub-agents.ts';
import { AgentTokens } from './app/agent/agent-tokens.ts';
import { IdleAgents } from './app/agent/end-idle.ts';
import { keepActive } from './app/agent/keep-active.ts';
import { RequestsInProgress } from './app/agent/requests-in-progress.ts';
import { Slots } from './app/agent/slots.ts';
import { ToolLists } from './app/tools/list-tools.ts';
import { PendingReceipts } from './app/tools/pending-receipts.ts';
import { ResultsInTransit } from './app/tools/results-in-transit.ts';
import { SharedWork } from './app/tools/shared-work.ts';
import { DecidedTasks } from './app/waiting-calls/decided-tasks.ts';
import { DisconnectTimes } from './app/waiting-calls/disconnect-times.ts';
import { WaitingRequests } from './app/waiting-calls/waiting-requests.ts';
import type { AgentProxyConfig } from './config.ts';
import type { ProxyContext } from './context.ts';
import { createPeers } from './peers/peers.ts';
import { hookEndpoint } from './rpc/client-hook-endpoint/index.ts';
import { mcpEndpoint } from './rpc/mcp-endpoint/index.ts';
import { modelEndpoint } from './rpc/model-endpoint/index.ts';
import { workerRoute } from './rpc/worker/index.ts';
import { openProxyStore } from './store/proxy-store.ts';

/** The service that acts for external agents: it forwards their model calls to the meter, and has no provider keys. */
export type AgentProxy = Awaited<ReturnType<typeof createAgentProxy>>;

/** Creates agent-proxy. */
export const createAgentProxy = defineService({
  name: 'agent-proxy',
  trusts: ['supervisor', 'spawn-budget', 'execution-meter'],
  async open(host: ServiceHost<AgentProxyConfig>) {
    const context = await openContext(host);
    const { config, telemetry } = context;
    const server = await host.listen([workerRoute(context), keyRoute(host.signer)]);
    const { endpointTls } = config;
    const { log, metrics } = telemetry;
    const files = endpointTls && TlsFiles.open({ ...endpointTls, log, metrics, use: 'edge' });
    host.defer(() => files?.close());
    const mcp = mcpEndpoint(context);
    const hooks = hookEndpoint(context);
    const models = modelEndpoint(context);
    const edge = await createEdge({
      ...config.endpoint,
      portSetting: 'WRIT_AGENT_PROXY_ENDPOINT_PORT',
      tls: files && { files, clientCertificates: 'none' },
      routes: [],
      gate: async () => {
        throw new PermissionDeniedError('CALLER_NOT_ALLOWED', 'This port serves no RPCs.');
      },
      web: (request, response) =>
        mcp(request, response) || hooks(request, response) || models(request, response),
      telemetry,
    });
    host.defer(() => edge.close(0));
    const idle = new IdleAgents(context);
    const sweeps = { keepActive: () => keepActive(context), endIdle: () => idle.end() };
    return {
      server,
      edge,
      background: [
        new Sweeper(sweeps, config.sweepMs, log, host.isClockSkewed),
        new DecidedTasks(context, host.isClockSkewed),
        { start: () => undefined, stop: () => context.slots.stop() },
      ],
      drain: () => context.open.drain(config.drainMs),
      exposes: { edgeAddress: edge.address },
    };
  },
});

async function openContext(host: ServiceHost<AgentProxyConfig>): Promise<ProxyContext> {
  const { config, parts, telemetry, clock, peerClocks, signer, verifier } = host;
  const { addressOf, tls, loopback } = parts;
  const store = await host.openStore((observer) => openProxyStore(config.store, observer));
  const peers = createPeers({
    config,
    clock,
    peerClocks,
    telemetry,
    signer,
    addressOf,
    tls,
    loopback,
  });
  host.defer(() => peers.close());
  const open = new RequestsInProgress(config.maxRequestsPerAgent);
  const tokens = new AgentTokens(store, peers, clock);
  const { grantMs, suspendMs } = config;
  const { log } = telemetry;
  const slots = new Slots({ peers, tokens, open, log, grantMs, suspendMs });
  const ownTime = (timeMs: number) => peerClocks.toOwn('supervisor', timeMs);
  const tools = {
    toolLists: new ToolLists(clock),
    sharedWork: new SharedWork(),
    waitingRequests: new WaitingRequests(clock),
    deliveries: new ResultsInTransit(),
    receipts: new PendingReceipts(),
    disconnectTimes: new DisconnectTimes(),
  };
  const runs = new KeyRunCache(peers, config.keyCacheMs);
  const subAgents = new SubAgents({ store, peers, tokens, slots });
  const agents = { runs, subAgents, tokens, slots, open, ownTime };
  return { config, store, clock, telemetry, verifier, peers, ...agents, ...tools };
}
