import {
  Activity,
  ChartColumn,
  type LucideIcon,
  OctagonPause,
  ScrollText,
  UserCheck,
  Users,
} from 'lucide-react';
import type { Session } from '../session/session-provider.tsx';

/** A page of the navigation. */
export interface NavigationEntry {
  readonly path: string;
  readonly name: string;
  readonly icon: LucideIcon;
  /** The RPC that the page calls first; the page is listed only if the roles of the user permit it. */
  readonly rpc: string;
}

const ENTRIES: readonly NavigationEntry[] = [
  { path: '/runs', name: 'Runs', icon: Activity, rpc: 'writ.run.v1.RunService/ListRuns' },
  {
    path: '/approvals',
    name: 'Approvals',
    icon: UserCheck,
    rpc: 'writ.approval.v1.ApprovalService/ListApprovals',
  },
  {
    path: '/usage',
    name: 'Usage',
    icon: ChartColumn,
    rpc: 'writ.usage.v1.UsageService/QueryUsage',
  },
  { path: '/pools', name: 'Pools', icon: Users, rpc: 'writ.run.v1.RunService/ListRuns' },
  {
    path: '/audit',
    name: 'Audit',
    icon: ScrollText,
    rpc: 'writ.audit.v1.AuditService/ListAuditRecords',
  },
  {
    path: '/halts',
    name: 'Halts',
    icon: OctagonPause,
    rpc: 'writ.control.v1.ControlService/ListHalts',
  },
];

/** The pages that the roles of the person permit. */
export function permittedPages({ can }: Session): readonly NavigationEntry[] {
  return ENTRIES.filter(({ rpc }) => can(rpc));
}

/** The page after the sign-in. */
export function firstPage(session: Session): string {
  return permittedPages(session)[0]?.path ?? '/none';
}
