import type { Invariant } from './invariant.ts';

const DIMENSIONS = ['tokens', 'cost', 'turns'];

export const noOverspend: Invariant = {
  holds: 'no budget level spends more than its cap, and no reservation remains (EM-3)',
  violations: async ({ platform }) => {
    // A level that several runs share has one row for each slice; the first row contains the caps of the level.
    const sums = DIMENSIONS.map((one) => {
      return `max(cap_${one}) as cap_${one}, sum(used_${one}) as used_${one}, sum(reserved_${one}) as reserved_${one}`;
    });
    const over = DIMENSIONS.map((one) => `sum(used_${one}) > max(cap_${one})`);
    const held = DIMENSIONS.map((one) => `sum(reserved_${one}) <> 0`);
    const balances = await platform.rows(
      'execution-meter',
      `select split_part(id, '#', 1) as level, ${sums.join(', ')} from balances group by 1
       having ${[...over, ...held].join(' or ')}`,
    );
    const open = await platform.rows(
      'execution-meter',
      'select run_id, agent_instance from tabs where closed_at is null',
    );
    return [
      ...balances.map((row) => `balance ${JSON.stringify(row)}`),
      ...open.map((row) => `open tab ${row.run_id} ${row.agent_instance}`),
    ];
  },
};
