import { useQueryClient } from '@tanstack/react-query';
import { type Approval, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';
import { useSession } from '../session/session-provider.tsx';
import { follow } from './follow.ts';

/** The pending approvals, updated live. */
export interface Pending {
  /** Oldest first; undefined until the first stream is connected. While no stream is connected, the last known list. */
  readonly approvals: readonly Approval[] | undefined;
  /** Whether the stream of approvals is connected. */
  readonly isLive: boolean;
  readonly error: unknown;
}

const NONE: Pending = { approvals: undefined, isLive: false, error: undefined };
const PendingContext = createContext<Pending>(NONE);

/** The approvals that wait for a person. */
export function usePendingApprovals(): Pending {
  return useContext(PendingContext);
}

/** Follows WatchApprovals for all pages. */
export function PendingApprovals({ children }: { readonly children: ReactNode }) {
  const { api, can } = useSession();
  const queries = useQueryClient();
  const mayWatch = can('writ.approval.v1.ApprovalService/WatchApprovals');
  const [byId, setById] = useState<ReadonlyMap<string, Approval>>();
  const [isLive, setLive] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!mayWatch) return;
    let isFirst = true;
    setError(undefined);
    return follow({
      open: (signal) => {
        isFirst = true;
        return api.approvals.watchApprovals({}, { signal });
      },
      onMessage: ({ approval }) => {
        // A new stream begins with all pending approvals; they replace the list of the previous stream.
        if (isFirst) setById(new Map());
        isFirst = false;
        if (approval === undefined) return;
        setById((known) => changed(known, approval));
        void queries.invalidateQueries({ queryKey: ['approvals'] });
        void queries.invalidateQueries({ queryKey: ['approval', approval.approvalId] });
      },
      onConnected: setLive,
      onError: setError,
    });
  }, [api, mayWatch, queries]);
  const pending = useMemo(() => {
    const approvals =
      byId &&
      [...byId.values()].sort((left, right) =>
        Number((left.createTime?.seconds ?? 0n) - (right.createTime?.seconds ?? 0n)),
      );
    return { approvals, isLive, error };
  }, [byId, isLive, error]);
  return <PendingContext value={pending}>{children}</PendingContext>;
}

function changed(
  known: ReadonlyMap<string, Approval> | undefined,
  approval: Approval,
): ReadonlyMap<string, Approval> {
  const next = new Map(known);
  if (approval.state === ApprovalState.PENDING) next.set(approval.approvalId, approval);
  else next.delete(approval.approvalId);
  return next;
}
