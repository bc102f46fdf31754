import { Alert, Anchor, Center, Loader, Stack } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { oidcManager } from './oidc.ts';
import { useSession } from './session-provider.tsx';

/** Receives the code of the OIDC issuer and continues with the runs. */
export function SignedInPage() {
  const { config } = useSession();
  const [problem, setProblem] = useState<string>();
  const isStarted = useRef(false);
  const { oidc } = config;
  useEffect(() => {
    if (oidc === undefined || isStarted.current) return;
    isStarted.current = true;
    oidcManager(oidc)
      .then((manager) => manager.signinRedirectCallback())
      // A new page load drops the code from the address and starts with the token.
      .then(() => location.replace('/'))
      .catch((error: unknown) =>
        setProblem(error instanceof Error ? error.message : String(error)),
      );
  }, [oidc]);
  return (
    <Center component="main" mih="100dvh" p="md">
      {problem === undefined ? (
        <Loader aria-label="Signing in" />
      ) : (
        <Stack>
          <Alert color="red" role="alert" title="Not signed in">
            {problem}
          </Alert>
          <Anchor href="/">Back to sign-in</Anchor>
        </Stack>
      )}
    </Center>
  );
}
