import { Alert, Anchor, Center, Loader, Stack } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { sentenceOf } from '../api/errors.ts';
import { oidcManager } from './oidc.ts';
import { useConfig } from './session-provider.tsx';

/** Receives the code of the OIDC issuer and continues with the first page. */
export function SignedInPage() {
  const { data: config, error } = useConfig();
  const [failure, setFailure] = useState<string>();
  const isStarted = useRef(false);
  const oidc = config?.oidc;
  useEffect(() => {
    if (oidc === undefined || isStarted.current) return;
    isStarted.current = true;
    oidcManager(oidc)
      .then((manager) => manager.signinRedirectCallback())
      // A full page load removes the code from the URL; the console then starts with the stored token.
      .then(() => location.replace('/'))
      .catch((error: unknown) =>
        setFailure(error instanceof Error ? error.message : String(error)),
      );
  }, [oidc]);
  const isWithoutIssuer = config !== undefined && oidc === undefined;
  const problem =
    (error === null ? failure : sentenceOf(error)) ??
    (isWithoutIssuer ? 'This platform has no sign-in at an OIDC issuer.' : undefined);
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
