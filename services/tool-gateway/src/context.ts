import type { Bus } from '@writ/bus';
import type { Signer, Verifier } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { InFlightCalls } from './app/calls/in-flight-calls.ts';
import type { GatewayEvents } from './events.ts';
import type { LiveTools } from './sources/live-tools.ts';
import type { GatewayStore } from './store/gateway-store.ts';

/** What every handler of the tool gateway works with; built by service.ts. */
export interface GatewayContext {
  readonly store: GatewayStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly tools: Pick<LiveTools, 'now'>;
  readonly inFlightCalls: InFlightCalls;
  /** Where its events go. */
  readonly bus: Pick<Bus, 'hasSubscribers'>;
  readonly events: GatewayEvents;
  /** Says that events were committed. */
  nudge(): void;
  /** As `nudge`, where a run ends: its watchers leave soon. */
  hurry(): void;
}
