import { type Migrations, outboxMigration } from '@writ/store';
import { approvedCallColumns } from './schema/create-approved-calls.ts';
import { auditChainTables } from './schema/create-audit-chain.ts';
import { childTables } from './schema/create-children.ts';
import { deadlineColumns } from './schema/create-deadlines.ts';
import { definitionTables } from './schema/create-definitions.ts';
import { haltTables } from './schema/create-halts.ts';
import { purgeColumns } from './schema/create-purges.ts';
import { reviewTables } from './schema/create-review.ts';
import { runTables } from './schema/create-runs.ts';
import { tenantRateTables } from './schema/create-tenant-rates.ts';

/** Every migration of the supervisor's store, in the order of names. */
export const supervisorMigrations: Migrations = {
  '0001_outbox': outboxMigration,
  '0002_runs': runTables,
  '0003_review': reviewTables,
  '0004_children': childTables,
  '0005_definitions': definitionTables,
  '0006_halts': haltTables,
  '0007_audit_chain': auditChainTables,
  '0008_deadlines': deadlineColumns,
  '0009_purges': purgeColumns,
  '0010_approved_calls': approvedCallColumns,
  '0011_tenant_rates': tenantRateTables,
};
