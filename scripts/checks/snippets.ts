/**
 * Collects the fenced blocks of README.md and docs/, each of which a test runs, loads or compiles unless it is exempt.
 */
import { globSync, readFileSync } from 'node:fs';

/** A fenced block of a page. */
export interface Snippet {
  readonly page: string;
  /** Line of its first line in the page, from 1. */
  readonly line: number;
  /** Language after the fence; empty when the page names none. */
  readonly language: string;
  readonly text: string;
}

/** A block that no test runs. */
export interface Exemption {
  readonly page: string;
  /** How the block begins. */
  readonly begins: string;
  readonly reason: string;
}

/**
 * The languages of blocks and how each is tested: `sh` is executed on a running platform by
 * test/interop/documented-commands.test.ts, `ts` is type-checked by examples-processes.test.ts, `yaml`, `json` and
 * `promql` are read by snippets.test.ts. `text` is output or a diagram.
 */
export const LANGUAGES = ['sh', 'ts', 'yaml', 'json', 'promql', 'text'];

const OWN_PROJECT =
  'runs in a folder outside of the repository; test/packages/packages.test.ts runs it word for word';
const OF_CODEX = 'settings of Codex; test/interop/codex.test.ts runs Codex with them';
const NEEDS_SERVERS = 'needs servers that belong to the operator';

/** The blocks that no test runs as they are, each with its reason. */
export const EXEMPT: readonly Exemption[] = [
  {
    page: 'docs/operations/systemd.md',
    begins: 'npm install\nnode deploy/docker/assemble.ts',
    reason:
      'installs below /opt; deploy/docker/test/image.test.ts runs both steps in another folder',
  },
  {
    page: 'docs/operations/systemd.md',
    begins: 'export $(grep -hv',
    reason: NEEDS_SERVERS,
  },
  {
    page: 'docs/operations/systemd.md',
    begins: 'cp deploy/systemd/writ@.service',
    reason: 'changes the system; deploy/systemd/test/units.test.ts checks what it installs',
  },
  {
    page: 'docs/operations/systemd.md',
    begins: 'systemctl daemon-reload',
    reason: 'needs systemd as the init system',
  },
  { page: 'docs/tutorial/own-agent.md', begins: 'npx writ init', reason: OWN_PROJECT },
  { page: 'docs/tutorial/own-agent.md', begins: 'rm -r test', reason: OWN_PROJECT },
  {
    page: 'docs/tutorial/own-agent.md',
    begins: 'npx writ doctor --no-platform\nnpx writ dev',
    reason: OWN_PROJECT,
  },
  { page: 'docs/tutorial/own-agent.md', begins: 'npx writ run expense-agent', reason: OWN_PROJECT },
  {
    page: 'docs/tutorial/own-agent.md',
    begins: 'npx writ approvals get APPROVAL\nnpx writ approvals edit',
    reason: OWN_PROJECT,
  },
  {
    page: 'docs/tutorial/own-agent.md',
    begins: 'npx writ usage --by agent\nnpx writ audit',
    reason: OWN_PROJECT,
  },
  {
    page: 'README.md',
    begins: 'npm install && npm start',
    reason:
      'every test needs the installation; platform/test/npm-start-processes.test.ts runs npm start',
  },
  {
    page: 'README.md',
    begins: 'npm start -- --exit',
    reason:
      'platform/test/demo-processes.test.ts and npm-start-processes.test.ts run these options',
  },
  {
    page: 'docs/tutorial/first-run.md',
    begins: 'npm install\nnpm start',
    reason: 'platform/test/npm-start-processes.test.ts runs npm start and answers its question',
  },
  {
    page: 'docs/explanation/audit.md',
    begins: 'npx writ audit verify audit.jsonl --keys supervisor-keys.json --checkpoint',
    reason: 'needs a published checkpoint; clients/cli/test/audit.test.ts verifies with one',
  },
  {
    page: 'docs/how-to/govern-an-agent.md',
    begins: 'claude mcp add',
    reason: 'asks a person at a terminal; test/interop/claude-code.test.ts runs Claude Code',
  },
  { page: 'docs/how-to/govern-an-agent.md', begins: 'model = "support-model"', reason: OF_CODEX },
  { page: 'docs/how-to/govern-an-agent.md', begins: '[[hooks.PreToolUse]]', reason: OF_CODEX },
  {
    page: 'docs/how-to/hooks.md',
    begins: 'WRIT_NATS_URL=nats://127.0.0.1:4222',
    reason:
      'follows NATS until it is stopped; clients/cli/test/observe.test.ts runs it on a NATS server',
  },
  {
    page: 'docs/how-to/other-languages.md',
    begins: '<plugin>',
    reason: 'CI has no JDK and no Maven; a build with these versions was run manually',
  },
  {
    page: 'docs/how-to/other-languages.md',
    begins: 'import com.google.rpc.ErrorInfo;',
    reason: 'CI has no JDK; clients/go and clients/python make the same calls in tests',
  },
  {
    page: 'docs/how-to/swap-the-gateway.md',
    begins: 'npx writ gateway verify 127.0.0.1:50054\n',
    reason: 'the suite waits for a gateway; test/conformance runs it on two of them',
  },
  {
    page: 'docs/how-to/swap-the-gateway.md',
    begins: 'npx writ certs tls\nnpx writ gateway verify',
    reason: 'the suite waits for a gateway; test/conformance runs it with these certificates',
  },
  {
    page: 'docs/how-to/swap-the-gateway.md',
    begins: 'npm run python',
    reason:
      'starts programs that run until they are stopped; test/conformance/swapped-gateway.test.ts does the same',
  },
  {
    page: 'docs/operations/deployment.md',
    begins: 'npm run compose-env',
    reason: 'CI has no container engine; deploy/compose/test checks file and environment',
  },
  {
    page: 'docs/operations/deployment.md',
    begins: 'kubectl create secret',
    reason: 'CI has no cluster; deploy/helm/test renders the chart with these secrets',
  },
  {
    page: 'docs/operations/deployment.md',
    begins: 'node deploy/helm/trial-secrets.ts',
    reason:
      'CI has no cluster; deploy/helm/test/trial.test.ts makes the Secrets and renders the chart',
  },
  {
    page: 'docs/operations/deployment.md',
    begins: 'helm uninstall',
    reason: 'CI has no cluster; deploy/helm/test checks names and labels',
  },
  {
    page: 'docs/operations/backup.md',
    begins: 'npx writ recover',
    reason: 'needs a stopped platform; clients/cli/test/recover.test.ts runs both commands',
  },
  {
    page: 'docs/operations/backup.md',
    begins: 'tar --exclude',
    reason: 'needs a stopped platform; clients/cli/test/recover.test.ts copies its folder',
  },
  { page: 'docs/operations/backup.md', begins: 'pg_basebackup', reason: NEEDS_SERVERS },
  { page: 'docs/operations/backup.md', begins: 'for database in', reason: NEEDS_SERVERS },
  {
    page: 'docs/operations/backup.md',
    begins: 'docker compose run',
    reason:
      'CI has no container engine; libs/service/src/stores/recover-stores.test.ts orders the same recovery',
  },
  {
    page: 'docs/operations/backup.md',
    begins: 'kubectl apply',
    reason:
      'CI has no cluster; libs/service/src/stores/recover-stores.test.ts orders the same recovery',
  },
  {
    page: 'docs/operations/systemd.md',
    begins: 'node /opt/writ/deploy/docker/prepare.ts',
    reason: 'needs the installation in /opt; deploy/docker/test/image.test.ts runs prepare.ts',
  },
  {
    page: 'docs/how-to/rotate-keys.md',
    begins: 'kubectl patch secret',
    reason: 'CI has no cluster; deploy/helm/test checks the name of the Secret and its key',
  },
  {
    page: 'docs/how-to/rotate-keys.md',
    begins: 'WRIT_SUPERVISOR_DATABASE_PASSWORD=… psql',
    reason: 'needs a server of the operator; scripts/postgres-roles.test.ts runs the file twice',
  },
  {
    page: 'docs/how-to/rotate-keys.md',
    begins: 'docker compose up -d',
    reason: 'CI has no container engine; deploy/compose/test checks the mounted file',
  },
  {
    page: 'docs/how-to/rotate-keys.md',
    begins: 'kubectl rollout restart',
    reason:
      'CI has no cluster; deploy/helm/test/trial.test.ts checks the names and the mounted file',
  },
  {
    page: 'docs/operations/nats.md',
    begins: 'WRIT_NATS_SUPERVISOR_PASSWORD',
    reason: NEEDS_SERVERS,
  },
  {
    page: 'docs/operations/postgres.md',
    begins: 'WRIT_SUPERVISOR_DATABASE_PASSWORD',
    reason: NEEDS_SERVERS,
  },
  {
    page: 'docs/operations/tls.md',
    begins: 'curl --cacert',
    reason: 'needs an edge with TLS; test/interop/edge-tls.test.ts calls one in both ways',
  },
  {
    page: 'docs/operations/tracing.md',
    begins: 'docker run -p 4317:4317',
    reason:
      'CI has no container engine; test/distributed/distributed-trace.test.ts exports to a collector',
  },
];

const FENCE = /^( *)```(\S*)\n(.*?)^\1```/gms;

/** Returns the blocks of a page. */
export function snippetsIn(page: string, text: string): readonly Snippet[] {
  return [...text.matchAll(FENCE)].map(({ index, 2: language = '', 3: body = '' }) => ({
    page,
    line: text.slice(0, index).split('\n').length + 1,
    language,
    text: body,
  }));
}

/** Returns the blocks of README.md and of all pages of docs/. */
export function allSnippets(): readonly Snippet[] {
  const pages = ['README.md', ...globSync('docs/**/*.md').sort()];
  return pages.flatMap((page) => snippetsIn(page, readFileSync(page, 'utf8')));
}

/** Returns the exemption of a block, if it has one. */
export function exemptionOf({ page, text }: Snippet): Exemption | undefined {
  return EXEMPT.find((each) => each.page === page && text.startsWith(each.begins));
}
