import type { CallKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { Counted, Counters, Tally } from '../domain/find-loop.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** A call to be counted: the key of its counters, and its id. */
export interface CountedCall extends CallKey {
  readonly tool: string;
  /** Empty when the arguments could not be read. */
  readonly argsHash: string;
}

const NONE: Tally = { calls: 0, lastCallId: '' };

/**
 * Returns the number of earlier calls in the run, of this tool by this agent, and of this tool with these arguments by
 * this agent; the last two counts come with the id of the last executed call (TG-2).
 */
export async function readCounters(db: GatewayReader, call: CountedCall): Promise<Counters> {
  const { tenant, runId, instance, tool, argsHash } = call;
  const { rows } = await selectCounters(db, { tenant, runId, instance, tool, argsHash });
  const tally = (toolName: string, hash: string): Tally => {
    const row = rows.find((found) => found.tool === toolName && found.args_hash === hash);
    return row === undefined ? NONE : { calls: row.calls, lastCallId: row.last_call_id ?? '' };
  };
  return {
    ofRun: tally('', '').calls,
    ofTool: tally(tool, ''),
    ofSignature: argsHash === '' ? NONE : tally(tool, argsHash),
  };
}

/** Counts a call for its run and, depending on `counted`, for its tool and its arguments. */
export async function countCall(
  trx: GatewayTransaction,
  { tenant, runId, instance, callId, tool, argsHash }: CountedCall,
  counted: Counted,
): Promise<void> {
  // A call is executed only if it increments the counter of its arguments; last_call_id names executed calls only.
  const lastCallId = counted.ofSignature ? callId : null;
  const row = { tenant, runId, instance, tool, argsHash, lastCallId };
  // Without a hash, the rows of the tool and of the arguments would be the same, and one statement must not write a row
  // twice.
  if (counted.ofTool && counted.ofSignature && argsHash !== '') await addToAll(trx, row);
  else {
    await addToRun(trx, row);
    if (counted.ofTool) await addToTool(trx, row);
    if (counted.ofSignature) await addToArguments(trx, row);
  }
}

type CounterKey = Omit<CountedCall, 'callId'>;

const selectCounters = prepareQuery((db: GatewayReader, call: CounterKey) =>
  db
    .selectFrom('counters')
    .select(['tool', 'args_hash', 'calls', 'last_call_id'])
    .where('tenant', '=', call.tenant)
    .where('run_id', '=', call.runId)
    .where('agent_instance', 'in', ['', call.instance])
    .where('tool', 'in', ['', call.tool])
    .where('args_hash', 'in', ['', call.argsHash]),
);

type CounterRow = CounterKey & { readonly lastCallId: string | null };

/** Increments all three counters in one statement. */
const addToAll = prepareQuery((db: GatewayReader, row: CounterRow) =>
  incrementQuery(db, [ofRun(row), ofTool(row), ofArguments(row)]),
);
const addToRun = prepareQuery((db: GatewayReader, row: CounterRow) =>
  incrementQuery(db, [ofRun(row)]),
);
const addToTool = prepareQuery((db: GatewayReader, row: CounterRow) =>
  incrementQuery(db, [ofTool(row)]),
);
const addToArguments = prepareQuery((db: GatewayReader, row: CounterRow) =>
  incrementQuery(db, [ofArguments(row)]),
);

function ofRun({ tenant, runId }: CounterRow) {
  return { tenant, run_id: runId, agent_instance: '', tool: '', args_hash: '', last_call_id: null };
}

function ofTool(row: CounterRow) {
  const { tenant, runId, instance, tool, lastCallId } = row;
  const agent = { tenant, run_id: runId, agent_instance: instance };
  return { ...agent, tool, args_hash: '', last_call_id: lastCallId };
}

function ofArguments(row: CounterRow) {
  return { ...ofTool(row), args_hash: row.argsHash };
}

function incrementQuery(db: GatewayReader, rows: readonly ReturnType<typeof ofTool>[]) {
  return db
    .insertInto('counters')
    .values(rows.map((row) => ({ ...row, calls: 1 })))
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id', 'agent_instance', 'tool', 'args_hash'])
        .doUpdateSet((eb) => ({
          calls: eb('counters.calls', '+', 1),
          last_call_id: eb.fn.coalesce('excluded.last_call_id', 'counters.last_call_id'),
        })),
    );
}
