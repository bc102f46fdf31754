import { type DatabaseOf, outboxTable } from '@writ/store';
import { agents, spawns } from './schema/agent.ts';
import { audit, auditChains, auditCheckpoints, leases } from './schema/audit.ts';
import { halts } from './schema/halt.ts';
import { notifications } from './schema/notification.ts';
import { orders, refusals, requests } from './schema/order.ts';
import { approvals, decisions, facts, receipts } from './schema/review.ts';
import { definitions, runLabels, runs, sessions, timeline } from './schema/run.ts';
import { tenantRates } from './schema/tenant-rate.ts';

/** Every table of the supervisor, in the order of creation. */
export const TABLES = [
  outboxTable,
  runs,
  runLabels,
  definitions,
  sessions,
  timeline,
  agents,
  spawns,
  orders,
  requests,
  refusals,
  facts,
  decisions,
  receipts,
  approvals,
  audit,
  auditChains,
  auditCheckpoints,
  leases,
  halts,
  notifications,
  tenantRates,
] as const;

/** The database of the supervisor. */
export interface SupervisorDatabase extends DatabaseOf<typeof TABLES> {}
