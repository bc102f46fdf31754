import { Alert, Button, Card, Divider, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { type FormEvent, useState } from 'react';
import { sentenceOf } from '../api/errors.ts';
import { oidcManager } from './oidc.ts';
import { useSession } from './session-provider.tsx';

/** Signs a person in, with an API key or at the OIDC issuer. */
export function SignInPage() {
  const { signIn, error, config } = useSession();
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState<string>();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (key.trim() === '') setProblem('Enter an API key.');
    else {
      setProblem(undefined);
      signIn(key.trim());
    }
  };
  const signInAtIssuer = (): void => {
    if (config.oidc === undefined) return;
    oidcManager(config.oidc)
      .then((manager) => manager.signinRedirect())
      .catch((failure: unknown) => setProblem(`The issuer cannot be reached: ${failure}`));
  };
  const rejected = error === null ? undefined : sentenceOf(error);
  return (
    <main style={{ minHeight: '100dvh', display: 'grid', placeItems: 'center', padding: 16 }}>
      <Card withBorder shadow="sm" padding="xl" w="100%" maw={420}>
        <Stack>
          <div>
            <img src="/writ.svg" alt="" width={40} height={40} />
            <Title order={1} size="h2" mt="sm">
              Sign in to Writ
            </Title>
            <Text className="muted" size="sm" mt={4}>
              Runs, approvals, usage and audit of your tenant.
            </Text>
          </div>
          {(problem ?? rejected) !== undefined && (
            <Alert color="red" role="alert" title="Not signed in">
              {problem ?? rejected}
            </Alert>
          )}
          {config.oidc !== undefined && (
            <>
              <Button size="md" onClick={signInAtIssuer}>
                Sign in at {new URL(config.oidc.issuer).host}
              </Button>
              <Divider label="or with an API key" />
            </>
          )}
          <form onSubmit={submit}>
            <Stack>
              <PasswordInput
                label="API key"
                description="Kept in this tab only. `writ dev` and `npm start` write the development key to .writ/dev-api-key."
                placeholder="writ_…"
                autoComplete="current-password"
                value={key}
                onChange={(event) => setKey(event.currentTarget.value)}
                visibilityToggleButtonProps={{ 'aria-label': 'Show the API key' }}
              />
              <Button type="submit" variant={config.oidc === undefined ? 'filled' : 'default'}>
                Sign in
              </Button>
            </Stack>
          </form>
        </Stack>
      </Card>
    </main>
  );
}
