import { takeTurn } from '../store/rate-limits.ts';
import type { RateLimit } from './agent.ts';
import { stopOnRefusal } from './execute-tool.ts';
import type { RunScope } from './scope.ts';

/**
 * Takes a turn of a shared limit; returns its time in milliseconds since 1970. Limits with the same
 * scope, level, `calls` and `perMs` are one limit.
 */
export async function turnOf(scope: RunScope, limit: RateLimit): Promise<number> {
  const { session, store } = scope;
  const { calls, perMs } = limit;
  const name = [limit.level, limit.scope, await holderOf(scope, limit), calls, perMs].join('/');
  const shared = { tenant: session.row.tenant, name, calls, perMs };
  const now = session.meta.clock.now();
  const at = await store.transaction((trx) => takeTurn(trx, shared, now), {
    resource: `limit:${shared.tenant}/${name}`,
  });
  return at.getTime();
}

async function holderOf(scope: RunScope, limit: RateLimit): Promise<string> {
  switch (limit.scope) {
    case 'run':
      return scope.session.row.run_id;
    case 'agent':
      return scope.session.row.name;
    case 'tenant':
      return '';
    case 'provider':
      return await providerOf(scope, limit.model ?? '');
  }
}

/** Returns the provider of a model alias; an unknown alias counts as a provider of its own. */
async function providerOf({ calls, peers }: RunScope, alias: string): Promise<string> {
  const models = await stopOnRefusal('worker', undefined, () =>
    calls.call({ audience: 'executionMeter' }, (options) =>
      peers.executionMeter.listModels(options),
    ),
  );
  return models.find((model) => model.alias === alias)?.provider ?? alias;
}
