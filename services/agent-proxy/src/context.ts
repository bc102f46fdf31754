import type { Verifier } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { KeyRunCache } from './app/access/key-run-cache.ts';
import type { SubAgents } from './app/access/sub-agents.ts';
import type { AgentTokens } from './app/agent/agent-tokens.ts';
import type { RequestsInProgress } from './app/agent/requests-in-progress.ts';
import type { Slots } from './app/agent/slots.ts';
import type { ToolLists } from './app/tools/list-tools.ts';
import type { PendingReceipts } from './app/tools/pending-receipts.ts';
import type { ResultsInTransit } from './app/tools/results-in-transit.ts';
import type { SharedWork } from './app/tools/shared-work.ts';
import type { DisconnectTimes } from './app/waiting-calls/disconnect-times.ts';
import type { WaitingRequests } from './app/waiting-calls/waiting-requests.ts';
import type { AgentProxyConfig } from './config.ts';
import type { ProxyPeers } from './peers/peers.ts';
import type { ProxyStore } from './store/proxy-store.ts';

/** The dependencies of all handlers and sweeps of agent-proxy; created by service.ts. */
export interface ProxyContext {
  readonly config: AgentProxyConfig;
  readonly store: ProxyStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly verifier: Verifier;
  readonly peers: ProxyPeers;
  readonly runs: KeyRunCache;
  readonly subAgents: SubAgents;
  readonly tokens: AgentTokens;
  readonly slots: Slots;
  readonly open: RequestsInProgress;
  readonly toolLists: ToolLists;
  readonly sharedWork: SharedWork;
  readonly waitingRequests: WaitingRequests;
  readonly deliveries: ResultsInTransit;
  readonly receipts: PendingReceipts;
  readonly disconnectTimes: DisconnectTimes;
  /** Converts a time on the clock of the supervisor to this process's clock, both in milliseconds since 1970. */
  readonly ownTime: (timeMs: number) => number;
}
