import type { Invariant } from './invariant.ts';

const DIMENSIONS = ['tokens', 'cost', 'turns'];

export const noOverspend: Invariant = {
  holds: 'no budget level spends more than its cap, and no reservation remains (EM-3)',
  violations: async ({ platform }) => {
    const over = DIMENSIONS.map((one) => `(cap_${one} is not null and used_${one} > cap_${one})`);
    const held = DIMENSIONS.map((one) => `reserved_${one} <> 0`);
    const balances = await platform.rows(
      'execution-meter',
      `select * from balances where ${[...over, ...held].join(' or ')}`,
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
