import { verifyAudit } from '../../audit-export.ts';
import type { Invariant } from './invariant.ts';

export const auditChainIntact: Invariant = {
  holds: 'every audit record is linked in one unbroken, signed chain (SV-8)',
  violations: async ({ platform }) => {
    const unlinked = await platform.rows(
      'supervisor',
      'select position, kind, run_id from audit where hash is null',
    );
    const { verdict } = await verifyAudit(platform);
    const [all] = await platform.rows('supervisor', 'select count(*) as records from audit');
    return [
      ...unlinked.map((row) => `not linked: ${JSON.stringify(row)}`),
      ...(verdict.holds ? [] : [verdict.sentence]),
      ...(Number(all?.records) > 0 ? [] : ['the audit log is empty']),
    ];
  },
};
