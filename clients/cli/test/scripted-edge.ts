import type { Route } from '@writ/rpc';
import { createEdge } from '@writ/rpc/edge';
import { createTelemetry } from '@writ/telemetry';
import { onTestFinished } from 'vitest';

/** Starts an edge that accepts every API key, with scripted RPCs; returns the environment variables for a command. */
export async function startScriptedEdge(routes: readonly Route[]) {
  const server = await createEdge({
    host: '127.0.0.1',
    port: 0,
    gate: async () => ({ person: { subject: 'ann', tenant: 'acme', roles: ['caller'] } }),
    telemetry: createTelemetry({ service: 'supervisor', logLevel: 'silent' }),
    routes,
  });
  server.setServing(true);
  onTestFinished(() => server.close(0));
  return { WRIT_ADDRESS: server.address, WRIT_API_KEY: 'key' };
}
