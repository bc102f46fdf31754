import type { OutboxTable } from '@writ/store';
import type {
  AuditChainsTable,
  AuditCheckpointsTable,
  LeasesTable,
  RefusalsTable,
} from './schema/audit-tables.ts';
import type { HaltsTable } from './schema/halt-tables.ts';
import type {
  ApprovalsTable,
  AuditTable,
  DecisionsTable,
  FactsTable,
  ReceiptsTable,
} from './schema/review-tables.ts';
import type {
  AgentsTable,
  DefinitionsTable,
  OrdersTable,
  RequestsTable,
  RunLabelsTable,
  RunsTable,
  SessionsTable,
  SpawnsTable,
  TenantRatesTable,
  TimelineTable,
} from './schema/run-tables.ts';

/** The tables of the supervisor. */
export interface SupervisorDatabase {
  runs: RunsTable;
  run_labels: RunLabelsTable;
  definitions: DefinitionsTable;
  sessions: SessionsTable;
  agents: AgentsTable;
  spawns: SpawnsTable;
  timeline: TimelineTable;
  orders: OrdersTable;
  requests: RequestsTable;
  facts: FactsTable;
  decisions: DecisionsTable;
  receipts: ReceiptsTable;
  approvals: ApprovalsTable;
  audit: AuditTable;
  audit_chains: AuditChainsTable;
  audit_checkpoints: AuditCheckpointsTable;
  refusals: RefusalsTable;
  leases: LeasesTable;
  halts: HaltsTable;
  tenant_rates: TenantRatesTable;
  outbox: OutboxTable;
}
