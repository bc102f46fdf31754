import { Activity, type LucideIcon } from 'lucide-react';
import type { Session } from '../session/session-provider.tsx';

/** A page of the navigation. */
export interface NavigationEntry {
  readonly path: string;
  readonly name: string;
  readonly icon: LucideIcon;
  /** The RPC that the page reads first; without the right to it, the page is not offered. */
  readonly rpc: string;
}

const ENTRIES: readonly NavigationEntry[] = [
  { path: '/runs', name: 'Runs', icon: Activity, rpc: 'writ.run.v1.RunService/ListRuns' },
];

/** The pages that the roles of the person permit. */
export function permittedPages({ can }: Session): readonly NavigationEntry[] {
  return ENTRIES.filter(({ rpc }) => can(rpc));
}

/** The page after the sign-in. */
export function firstPage(session: Session): string {
  return permittedPages(session)[0]?.path ?? '/none';
}
