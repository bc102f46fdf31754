import type { Counted, Counters } from '../domain/checks.ts';
import type { FreezeSubject } from '../domain/freeze.ts';
import type { GatewayReader, GatewayTransaction } from './gateway-store.ts';

/** What a call counts for. */
export interface CountedCall extends FreezeSubject {
  readonly tool: string;
  /** Empty when the arguments could not be read. */
  readonly argsHash: string;
}

/** How many calls there were before this one (TG-2). */
export async function readCounters(db: GatewayReader, call: CountedCall): Promise<Counters> {
  const rows = await db
    .selectFrom('counters')
    .select(['tool', 'args_hash', 'calls'])
    .where('tenant', '=', call.tenant)
    .where('run_id', '=', call.runId)
    .where('agent_instance', 'in', ['', call.agentInstance])
    .where('tool', 'in', ['', call.tool])
    .where('args_hash', 'in', ['', call.argsHash])
    .execute();
  const count = (tool: string, hash: string) =>
    rows.find((row) => row.tool === tool && row.args_hash === hash)?.calls ?? 0;
  return {
    ofRun: count('', ''),
    ofTool: count(call.tool, ''),
    ofSignature: call.argsHash === '' ? 0 : count(call.tool, call.argsHash),
  };
}

/** Counts a call for its run and, where it got that far, for its tool and its arguments. */
export async function countCall(
  trx: GatewayTransaction,
  call: CountedCall,
  { ofTool, ofSignature }: Counted,
): Promise<void> {
  const { tenant, runId: run_id, agentInstance: agent_instance, tool, argsHash: args_hash } = call;
  const row = { tenant, run_id, agent_instance: '', tool: '', args_hash: '', calls: 1 };
  const rows = [
    row,
    ...(ofTool ? [{ ...row, agent_instance, tool }] : []),
    ...(ofSignature ? [{ ...row, agent_instance, tool, args_hash }] : []),
  ];
  await trx
    .insertInto('counters')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id', 'agent_instance', 'tool', 'args_hash'])
        .doUpdateSet((eb) => ({ calls: eb('counters.calls', '+', 1) })),
    )
    .execute();
}
