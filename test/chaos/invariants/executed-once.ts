import { readLedger } from '@writ/example-refund-desk/ledger';
import { readShelf } from '@writ/example-research-team/shelf';
import type { Invariant } from './invariant.ts';

export const executedOnce: Invariant = {
  holds: 'a destructive call is executed at most once, with one effect per run (TG-1, TG-5)',
  violations: async ({ platform }) => {
    const repeatedCalls = await platform.rows(
      'tool-gateway',
      "select run_id, call_id, tool, attempts from calls where side_effect = 'destructive' and attempts > 1",
    );
    const { refunds, emails } = readLedger(platform.dataDir);
    return [
      ...repeatedCalls.map((row) => `executed again: ${JSON.stringify(row)}`),
      ...repeated('refund', refunds),
      ...repeated('email', emails),
      ...repeated('brief', readShelf(platform.dataDir)),
    ];
  },
};

function repeated(what: string, rows: readonly { readonly run_id: string }[]): string[] {
  const runs = rows.map((row) => row.run_id);
  const twice = new Set(runs.filter((runId, index) => runs.indexOf(runId) !== index));
  return [...twice].map((runId) => `more than one ${what}: ${runId}`);
}
