import type { Invariant } from './invariant.ts';

export const noLostApproval: Invariant = {
  holds:
    'an acknowledged human decision is recorded and executed, and no approval stays pending (SV-5, RT-3)',
  violations: async ({ platform, load }) => {
    const approvals = await platform.rows(
      'supervisor',
      `select a.approval_id, a.run_id, a.state, a.approved, a.request_id, r.state as run_state,
         exists (select 1 from receipts c where c.run_id = a.run_id and c.instance = a.instance
           and c.call_id = a.call_id) as has_receipt
       from approvals a join runs r on r.run_id = a.run_id`,
    );
    const byId = new Map(approvals.map((row) => [String(row.approval_id), row]));
    const lost = [...load.reviewers.decided].filter(
      ([approvalId, requestId]) => byId.get(approvalId)?.request_id !== requestId,
    );
    return [
      ...lost.map(([approvalId]) => `acknowledged and lost: ${approvalId}`),
      ...approvals
        .filter(({ state }) => state === 'pending')
        .map((row) => `still pending: ${row.approval_id} of ${row.run_id}`),
      ...approvals
        .filter(({ approved, has_receipt: has }) => approved === true && has === false)
        .filter(({ run_state: state }) => state === 'COMPLETED')
        .map((row) => `approved but not executed: ${row.approval_id} of ${row.run_id}`),
    ];
  },
};
