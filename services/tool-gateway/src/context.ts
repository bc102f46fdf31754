import type { Bus } from '@writ/bus';
import type { Signer, Verifier } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { InFlightCalls } from './app/calls/in-flight-calls.ts';
import type { GatewayEvents } from './events.ts';
import type { LiveTools } from './sources/live-tools.ts';
import type { GatewayStore } from './store/gateway-store.ts';

/** Dependencies of the handlers and use cases; built by service.ts. */
export interface GatewayContext {
  readonly store: GatewayStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly tools: Pick<LiveTools, 'now'>;
  readonly inFlightCalls: InFlightCalls;
  /** Reports whether hook events have subscribers; the outbox relay publishes the events. */
  readonly bus: Pick<Bus, 'hasSubscribers'>;
  readonly events: GatewayEvents;
  /** Starts delivery of the committed outbox events. */
  wakeRelay(): void;
  /** Like `wakeRelay`, but publishes at once; called after a freeze order is committed. */
  flushSoon(): void;
}
