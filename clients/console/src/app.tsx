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

const RunsPage = lazy(async () => ({
  default: (await import('./pages/runs/runs-page.tsx')).RunsPage,
}));
const RunPage = lazy(async () => ({ default: (await import('./pages/run/run-page.tsx')).RunPage }));
const ApprovalsPage = lazy(async () => ({
  default: (await import('./pages/approvals/approvals-page.tsx')).ApprovalsPage,
}));
const ApprovalPage = lazy(async () => ({
  default: (await import('./pages/approvals/approval-page.tsx')).ApprovalPage,
}));
const UsagePage = lazy(async () => ({
  default: (await import('./pages/usage/usage-page.tsx')).UsagePage,
}));
const PoolsPage = lazy(async () => ({
  default: (await import('./pages/pools/pools-page.tsx')).PoolsPage,
}));
const AuditPage = lazy(async () => ({
  default: (await import('./pages/audit/audit-page.tsx')).AuditPage,
}));
const HaltsPage = lazy(async () => ({
  default: (await import('./pages/halts/halts-page.tsx')).HaltsPage,
}));

/** The pages by path; before the sign-in only the sign-in. */
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
