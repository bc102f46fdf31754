import { prepareQuery } from '@writ/store';
import type { Counted, Counters, Tally } from '../domain/checks.ts';
import type { CallKey } from '../domain/writ.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** The key of a call's counters. */
export interface CountedCall extends CallKey {
  readonly tool: string;
  /** Empty when the arguments could not be read. */
  readonly argsHash: string;
}

const NONE: Tally = { calls: 0, lastCallId: '' };

/** The numbers of earlier calls (TG-2). */
export async function readCounters(db: GatewayReader, call: CountedCall): Promise<Counters> {
  const { tenant, runId, agentInstance, tool, argsHash } = call;
  const { rows } = await selectCounters(db, { tenant, runId, agentInstance, tool, argsHash });
  const tally = (ofTool: string, hash: string): Tally => {
    const row = rows.find((found) => found.tool === ofTool && found.args_hash === hash);
    return row === undefined ? NONE : { calls: row.calls, lastCallId: row.last_call_id ?? '' };
  };
  return {
    ofRun: tally('', '').calls,
    ofTool: tally(tool, ''),
    ofSignature: argsHash === '' ? NONE : tally(tool, argsHash),
  };
}

/** Counts a call for its run and, as `counted` says, for its tool and its arguments. */
export async function countCall(
  trx: GatewayTransaction,
  { tenant, runId, agentInstance, callId, tool, argsHash }: CountedCall,
  counted: Counted,
): Promise<void> {
  const run = { tenant, runId, agentInstance: '', tool: '', argsHash: '', lastCallId: null };
  await addOne(trx, run);
  // Only a call that counts for its arguments is executed and has a result.
  const row = { ...run, agentInstance, tool, lastCallId: counted.ofSignature ? callId : null };
  if (counted.ofTool) await addOne(trx, row);
  if (counted.ofSignature) await addOne(trx, { ...row, argsHash });
}

type CounterKey = Omit<CountedCall, 'callId'>;

const selectCounters = prepareQuery((db: GatewayReader, call: CounterKey) =>
  db
    .selectFrom('counters')
    .select(['tool', 'args_hash', 'calls', 'last_call_id'])
    .where('tenant', '=', call.tenant)
    .where('run_id', '=', call.runId)
    .where('agent_instance', 'in', ['', call.agentInstance])
    .where('tool', 'in', ['', call.tool])
    .where('args_hash', 'in', ['', call.argsHash]),
);

const addOne = prepareQuery(
  (db: GatewayReader, row: CounterKey & { readonly lastCallId: string | null }) =>
    db
      .insertInto('counters')
      .values({
        tenant: row.tenant,
        run_id: row.runId,
        agent_instance: row.agentInstance,
        tool: row.tool,
        args_hash: row.argsHash,
        calls: 1,
        last_call_id: row.lastCallId,
      })
      .onConflict((conflict) =>
        conflict
          .columns(['tenant', 'run_id', 'agent_instance', 'tool', 'args_hash'])
          .doUpdateSet((eb) => ({
            calls: eb('counters.calls', '+', 1),
            last_call_id: eb.fn.coalesce('excluded.last_call_id', 'counters.last_call_id'),
          })),
      ),
);
