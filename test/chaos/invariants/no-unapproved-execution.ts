import type { Invariant } from './invariant.ts';

export const noUnapprovedExecution: Invariant = {
  holds: 'only approved calls are executed, byte for byte (SV-1, SV-6, TG-1)',
  violations: async ({ platform }) => {
    const executed = await platform.rows(
      'tool-gateway',
      'select run_id, agent_instance, call_id, tool, args_sha256 from calls where attempts > 0',
    );
    const decisions = await platform.rows(
      'supervisor',
      `select d.run_id, d.instance, d.call_id, d.args_sha256, d.verdict, a.approved
       from decisions d left join approvals a on a.approval_id = d.approval_id
       where d.executed_action is not null`,
    );
    const approved = new Map(
      decisions
        .filter(({ verdict, approved: byHuman }) => verdict !== 'escalate' || byHuman === true)
        .map((row) => [`${row.run_id} ${row.instance} ${row.call_id}`, row.args_sha256]),
    );
    return executed
      .filter(
        (row) =>
          approved.get(`${row.run_id} ${row.agent_instance} ${row.call_id}`) !== row.args_sha256,
      )
      .map((row) => JSON.stringify(row));
  },
};
