import { readLedger } from '@writ/example-refund-desk/ledger';
import { readShelf } from '@writ/example-research-team/shelf';
import type { Invariant } from './invariant.ts';

export const executedOnce: Invariant = {
  holds: 'a destructive call is begun once, and the world was changed once a run (TG-1, TG-5)',
  violations: async ({ platform }) => {
    const begun = await platform.rows(
      'tool-gateway',
      "select run_id, call_id, tool, attempts from calls where side_effect = 'destructive' and attempts > 1",
    );
    const { refunds, emails } = readLedger(platform.dataDir);
    return [
      ...begun.map((row) => `begun again: ${JSON.stringify(row)}`),
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
