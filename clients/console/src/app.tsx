import { Center, Loader } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { Navigate, Route, Routes } from 'react-router';
import { Loading } from './parts/notices.tsx';
import { CALLBACK_PATH } from './session/oidc.ts';
import { useSession } from './session/session-provider.tsx';
import { SignInPage } from './session/sign-in-page.tsx';
import { SignedInPage } from './session/signed-in-page.tsx';
import { firstPage } from './shell/navigation.ts';
import { NotFoundPage } from './shell/not-found-page.tsx';
import { Shell } from './shell/shell.tsx';

/**
 * Loaders of the page modules. The key of a list page is the first segment of its path; the key of the page of one item
 * is the singular.
 */
const MODULES = {
  runs: () => import('./pages/runs/runs-page.tsx'),
  run: () => import('./pages/run/run-page.tsx'),
  approvals: () => import('./pages/approvals/approvals-page.tsx'),
  approval: () => import('./pages/approvals/approval-page.tsx'),
  usage: () => import('./pages/usage/usage-page.tsx'),
  pools: () => import('./pages/pools/pools-page.tsx'),
  audit: () => import('./pages/audit/audit-page.tsx'),
  halts: () => import('./pages/halts/halts-page.tsx'),
};

const RunsPage = lazy(async () => ({ default: (await MODULES.runs()).RunsPage }));
const RunPage = lazy(async () => ({ default: (await MODULES.run()).RunPage }));
const ApprovalsPage = lazy(async () => ({ default: (await MODULES.approvals()).ApprovalsPage }));
const ApprovalPage = lazy(async () => ({ default: (await MODULES.approval()).ApprovalPage }));
const UsagePage = lazy(async () => ({ default: (await MODULES.usage()).UsagePage }));
const PoolsPage = lazy(async () => ({ default: (await MODULES.pools()).PoolsPage }));
const AuditPage = lazy(async () => ({ default: (await MODULES.audit()).AuditPage }));
const HaltsPage = lazy(async () => ({ default: (await MODULES.halts()).HaltsPage }));

// Loads the page while the session is fetched; an error is shown when the page is rendered.
void moduleOf(location.pathname)?.().catch(() => undefined);

/** Returns the loader of the page module for a path; undefined if no page has this path. */
function moduleOf(path: string): (() => Promise<unknown>) | undefined {
  const [, list = '', id] = path.split('/');
  const name = id === undefined ? list : list.replace(/s$/, '');
  return Object.entries(MODULES).find(([known]) => known === name)?.[1];
}

/** Renders the page of the current path, or the sign-in page if there is no session. */
export function App() {
  const session = useSession();
  if (location.pathname === CALLBACK_PATH) return <SignedInPage />;
  if (session.isPending) {
    return (
      <Center mih="100dvh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
  if (session.caller === undefined) return <SignInPage />;
  return (
    <Shell>
      <Suspense fallback={<Loading />}>
        <Routes>
          <Route path="/" element={<Navigate to={firstPage(session)} replace />} />
          <Route path="/runs" element={<RunsPage />} />
          <Route path="/runs/:runId" element={<RunPage />} />
          <Route path="/approvals" element={<ApprovalsPage />} />
          <Route path="/approvals/:approvalId" element={<ApprovalPage />} />
          <Route path="/usage" element={<UsagePage />} />
          <Route path="/pools" element={<PoolsPage />} />
          <Route path="/audit" element={<AuditPage />} />
          <Route path="/halts" element={<HaltsPage />} />
          <Route path="*" element={<NotFoundPage />} />
        </Routes>
      </Suspense>
    </Shell>
  );
}
