import { type DatabaseOf, outboxTable } from '@writ/store';
import { agents, spawns } from './agent.ts';
import { audit, auditChains, auditCheckpoints, leases } from './audit.ts';
import { halts } from './halt.ts';
import { notifications } from './notification.ts';
import { orders, refusals, requests } from './order.ts';
import { approvals, decisions, facts, receipts } from './review.ts';
import { definitions, runLabels, runs, sessions, timeline } from './run.ts';
import { tenantRates } from './tenant-rate.ts';

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
