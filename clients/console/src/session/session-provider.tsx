import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { GetCallerResponse } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState,
} from 'react';
import { type Api, createApi } from '../api/api.ts';
import { isUnauthenticated } from '../api/errors.ts';
import { storeApiKey, storedApiKey } from './credential.ts';
import { forgetTenant } from './forget-tenant.ts';
import { forgetOidcUser, type OidcSignIn, oidcManager, oidcToken } from './oidc.ts';

/** The contents of /console.json. */
export interface ConsoleConfig {
  readonly oidc?: OidcSignIn;
  /** URL of a trace with `{trace_id}`. */
  readonly trace_url?: string;
}

/** The session of the user. */
export interface Session {
  readonly api: Api;
  readonly config: ConsoleConfig;
  /** The signed-in user; undefined before the sign-in. */
  readonly caller: GetCallerResponse | undefined;
  /** Whether the stored credential is still being checked. */
  readonly isPending: boolean;
  /** Why the last attempt to sign in failed. */
  readonly error: unknown;
  /** Whether the roles permit an RPC, such as `writ.run.v1.RunService/CancelRun`. */
  can(rpc: string): boolean;
  signIn(apiKey: string): void;
  signOut(): void;
}

const SessionContext = createContext<Session | undefined>(undefined);

/** The session. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error('useSession is used outside of SessionProvider.');
  return session;
}

/** The clients of the services. */
export function useApi(): Api {
  return useSession().api;
}

async function readConfig(): Promise<ConsoleConfig> {
  const response = await fetch('/console.json');
  if (!response.ok) throw new Error('The settings of the console could not be read.');
  return (await response.json()) as ConsoleConfig;
}

/** The settings of the console, which are read once. */
export function useConfig() {
  return useQuery({
    queryKey: ['config'],
    queryFn: readConfig,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Signs in with the stored credential and provides the session. */
export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const [apiKey, setApiKey] = useState(storedApiKey);
  // Each attempt is a separate query, so that the result for a previous key is not reused.
  const [attempt, setAttempt] = useState(0);
  const queries = useQueryClient();
  const { data: config, error: configError } = useConfig();
  const oidc = config?.oidc;
  const api = useMemo(
    () => createApi(async () => apiKey ?? (oidc && (await oidcToken(oidc)))),
    [apiKey, oidc],
  );
  const caller = useQuery({
    queryKey: ['caller', attempt],
    // Signing in with an API key does not require /console.json.
    enabled: apiKey !== undefined || config !== undefined,
    queryFn: async () => {
      const isSignedIn = apiKey !== undefined || (oidc && (await oidcToken(oidc))) !== undefined;
      return isSignedIn ? await api.caller.getCaller({}) : null;
    },
    staleTime: 60_000,
  });
  useEffect(() => {
    if (oidc === undefined) return;
    // oidcToken removes the user when the issuer refuses to renew the token.
    const forget = () => {
      forgetTenant(queries);
      void queries.invalidateQueries({ queryKey: ['caller'] });
    };
    // A failure to load the module is reported by the calls that need it.
    const opened = oidcManager(oidc).catch(() => undefined);
    void opened.then((manager) => manager?.events.addUserUnloaded(forget));
    return () => void opened.then((manager) => manager?.events.removeUserUnloaded(forget));
  }, [oidc, queries]);
  const signIn = useCallback(
    (key: string) => {
      // A user whose key was rejected has not signed out, so the cache still has the data of that user's tenant.
      forgetTenant(queries);
      storeApiKey(key);
      setApiKey(key);
      setAttempt((count) => count + 1);
    },
    [queries],
  );
  const signOut = useCallback(() => {
    storeApiKey(undefined);
    setApiKey(undefined);
    setAttempt((count) => count + 1);
    if (oidc !== undefined) void forgetOidcUser(oidc);
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'config' });
  }, [oidc, queries]);
  const session = useMemo((): Session => {
    const isRejected = caller.error !== null && isUnauthenticated(caller.error);
    const person = isRejected ? undefined : (caller.data ?? undefined);
    return {
      api,
      config: config ?? {},
      caller: person,
      isPending:
        apiKey === undefined && config === undefined ? configError === null : caller.isPending,
      error: caller.error ?? configError,
      can: (rpc) => person?.methods.includes(rpc) === true,
      signIn,
      signOut,
    };
  }, [
    api,
    apiKey,
    config,
    configError,
    caller.data,
    caller.error,
    caller.isPending,
    signIn,
    signOut,
  ]);
  return <SessionContext value={session}>{children}</SessionContext>;
}
