import { acquirePermit } from '../store/rate-limits.ts';
import type { RateLimit } from './agent.ts';
import { stopOnRefusal } from './execute-tool.ts';
import type { RunScope } from './scope.ts';

/**
 * Acquires the next permit of a shared rate limit; returns the time from which the permit is valid, in milliseconds
 * since 1970. Calls with the same scope, level, `calls` and `perMs` share one limit.
 */
export async function nextPermit(scope: RunScope, limit: RateLimit): Promise<number> {
  const { session, store } = scope;
  const { tenant, run_id } = session.row;
  const { calls, perMs } = limit;
  const runId = limit.scope === 'run' ? run_id : '';
  const name = [limit.level, limit.scope, await holderOf(scope, limit), calls, perMs].join('/');
  const shared = { tenant, runId, name, calls, perMs };
  const now = session.meta.clock.now();
  const touched =
    runId === '' ? { resource: `limit:${tenant}/${name}` } : { run: { tenant, runId } };
  const at = await store.transaction((trx) => acquirePermit(trx, shared, now), touched);
  return at.getTime();
}

async function holderOf(scope: RunScope, limit: RateLimit): Promise<string> {
  switch (limit.scope) {
    case 'agent':
      return scope.session.row.name;
    case 'run':
    case 'tenant':
      return '';
    case 'provider':
      return await providerOf(scope, limit.model ?? '');
  }
}

/** Returns the provider of a model alias; returns the alias itself when it is unknown. */
async function providerOf({ calls, peers }: RunScope, alias: string): Promise<string> {
  const models = await stopOnRefusal('worker', undefined, () =>
    calls.call({ audience: 'executionMeter' }, (options) =>
      peers.executionMeter.listModels(options),
    ),
  );
  return models.find((model) => model.alias === alias)?.provider ?? alias;
}
