/**
 * The baseline of a service: it serves the RPCs of the service with the same server, authentication, validation and
 * tokens, but its handlers do nothing. A request whose id starts with `commit` inserts one row and waits
 * until it is durable.
 */
import { once } from 'node:events';
import type { DescService } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { createTrust, createVerifier, internalGate } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { createRpcServer, type Handlers, route } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { openEchoStore } from './echo-store.ts';

const SERVED = {
  'spawn-budget': SpawnBudgetService,
  'execution-meter': ExecutionMeterService,
} as const satisfies Readonly<Record<string, DescService>>;

/** Responses of realistic size; the grant has the length of a real one. */
const ANSWERS: Readonly<Record<string, object>> = {
  acquire: {
    slot: { agent: { name: 'child', instance: 'child-1' }, state: 1, grant: 'g'.repeat(560) },
  },
  release: { released: true },
  reserve: { reservation: { callId: 'call-1', state: 1, tokens: 100n, costNanoUsd: 1_000n } },
  settle: { reservation: { callId: 'call-1', state: 3, tokens: 60n, costNanoUsd: 600n } },
};

const service = process.env.ECHO_SERVICE === 'spawn-budget' ? 'spawn-budget' : 'execution-meter';
const telemetry = createTelemetry({ service: 'echo', logLevel: 'silent' });
const store = await openEchoStore(process.env.ECHO_FILE);
const trust = createTrust({
  addresses: { supervisor: process.env.WRIT_SUPERVISOR_ADDRESS ?? '' },
  telemetry,
});
const verifier = createVerifier({ trust, clock: systemClock });

type Identified = { readonly requestId?: string; readonly callId?: string };

const handlers = SERVED[service].methods.map(({ localName }) => {
  const handle = async ({ requestId, callId }: Identified): Promise<object> => {
    if ((callId ?? requestId)?.startsWith('commit') === true) {
      await store.commit();
    }
    return ANSWERS[localName] ?? {};
  };
  return [localName, handle] as const;
});
const server = await createRpcServer({
  host: '127.0.0.1',
  port: 0,
  routes: [
    route(SERVED[service] as DescService, Object.fromEntries(handlers) as Handlers<DescService>),
  ],
  gate: internalGate({ service, verifier, enforceSlotGrants: false }),
  telemetry,
});
server.setServing(true);
const terminated = once(process, 'SIGTERM');
console.log(`${service} echo listens on ${server.address}`);
await terminated;
await server.close(0);
await trust.close();
await store.close();
