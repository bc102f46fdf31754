import type { OutboxTable } from '@writ/store';
import type {
  ApprovalsTable,
  AuditTable,
  DecisionsTable,
  FactsTable,
  ReceiptsTable,
} from './schema-review.ts';
import type {
  AgentsTable,
  OrdersTable,
  RequestsTable,
  RunsTable,
  SessionsTable,
  TimelineTable,
} from './schema-runs.ts';

/** Everything that the supervisor remembers. */
export interface SupervisorDatabase {
  runs: RunsTable;
  sessions: SessionsTable;
  agents: AgentsTable;
  timeline: TimelineTable;
  orders: OrdersTable;
  requests: RequestsTable;
  facts: FactsTable;
  decisions: DecisionsTable;
  receipts: ReceiptsTable;
  approvals: ApprovalsTable;
  audit: AuditTable;
  outbox: OutboxTable;
}
