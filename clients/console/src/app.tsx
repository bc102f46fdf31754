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
          <Route path="*" element={<NotFoundPage />} />
        </Routes>
      </Suspense>
    </Shell>
  );
}
