import type { Signer, Verifier } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Policy } from '@writ/policy';
import type { Telemetry } from '@writ/telemetry';
import type { SupervisorConfig } from './config.ts';
import type { AgentManifest } from './domain/manifest/agent-manifest.ts';
import type { SupervisorEvents } from './events.ts';
import type { SupervisorPeers } from './peers/peers.ts';
import type { SupervisorStore } from './store/supervisor-store.ts';

/** What every handler, order and sweep of the supervisor works with; built by service.ts. */
export interface SupervisorContext {
  readonly config: SupervisorConfig;
  readonly store: SupervisorStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly peers: SupervisorPeers;
  readonly events: SupervisorEvents;
  /** The agents that can be started, by name. */
  readonly agents: ReadonlyMap<string, AgentManifest>;
  readonly policy: Policy;
}
