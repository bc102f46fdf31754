import { derivedId } from '@writ/kernel';
import type { Invariant } from './invariant.ts';

export const modelCallsMetered: Invariant = {
  holds:
    'every request to the model has a ledger entry, and an answered call is not sent again (EM-6, EM-7)',
  violations: async ({ platform }) => {
    const entries = await platform.rows(
      'execution-meter',
      'select * from entries where attempt > 0',
    );
    const calls = await platform.rows(
      'execution-meter',
      'select * from calls where answer is not null',
    );
    const idOf = (row: Readonly<Record<string, unknown>>, attempt: number) =>
      derivedId(
        'call',
        ...[row.tenant, row.run_id, row.agent_instance, row.call_id, attempt].map(String),
      );
    const booked = new Set(entries.map((row) => idOf(row, Number(row.attempt))));
    const asked = new Map<string, number>();
    for (const { request_id: id } of platform.modelRequests()) {
      asked.set(id ?? 'none', (asked.get(id ?? 'none') ?? 0) + 1);
    }
    const times = (id: string) => asked.get(id) ?? 0;
    const again = calls.filter(
      (row) =>
        times(idOf(row, Number(row.attempts))) > 1 ||
        times(idOf(row, Number(row.attempts) + 1)) > 0,
    );
    return [
      ...[...asked.keys()].filter((id) => !booked.has(id)).map((id) => `no ledger entry: ${id}`),
      ...again.map((row) => `sent again: ${row.run_id} ${row.agent_instance} ${row.call_id}`),
    ];
  },
};
