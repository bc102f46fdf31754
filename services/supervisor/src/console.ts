import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { OidcSettings } from '@writ/identity';
import { omitUndefined } from '@writ/kernel';
import { staticFiles, type WebHook } from '@writ/rpc/edge';

const MISSING =
  'The console is not built: run `npm run console` in the repository, or set WRIT_CONSOLE_DIR to its files; the API is available.';

/** Settings of the console. */
export interface ConsoleSettings {
  /** Folder with the built files; undefined = the files of the package @writ/console, if they are built. */
  readonly folder: string | undefined;
  /** URL template of a trace, in which `{trace_id}` is replaced with the trace id; undefined = no link. */
  readonly traceUrl: string | undefined;
  /** Client of the OIDC issuer for people who sign in with a browser; undefined = API keys only. */
  readonly oidcClientId: string | undefined;
  readonly oidcScope: string;
}

/** Serves the console at the public port, and the settings that its pages need before a person has signed in (PE-2). */
export function consoleFiles(
  { folder, traceUrl, oidcClientId, oidcScope }: ConsoleSettings,
  oidc: OidcSettings | undefined,
): WebHook {
  const signIn =
    oidc === undefined || oidcClientId === undefined
      ? undefined
      : {
          issuer: oidc.issuer,
          audience: oidc.audience,
          client_id: oidcClientId,
          scope: oidcScope,
        };
  return staticFiles({
    folder: builtFolder(folder),
    missing: MISSING,
    documents: {
      '/console.json': {
        ...(signIn && { oidc: signIn }),
        ...omitUndefined({ trace_url: traceUrl }),
      },
    },
    connectTo: signIn === undefined ? [] : [new URL(signIn.issuer).origin],
  });
}

function builtFolder(folder: string | undefined): string | undefined {
  // The published package contains the files; in the repository, they are read from the package @writ/console.
  const packaged = join(import.meta.dirname, '../console');
  const candidates = folder === undefined ? [packaged, workspaceFolder()] : [folder];
  return candidates.find((one) => one !== undefined && existsSync(join(one, 'index.html')));
}

/** Folder of the package @writ/console; undefined when it is not installed. */
function workspaceFolder(): string | undefined {
  try {
    const { resolve } = createRequire(import.meta.url);
    return join(dirname(resolve('@writ/console/package.json')), 'dist');
  } catch {
    return undefined;
  }
}
