/**
 * Installs the conformance suite of the Model Context Protocol. The suite is not a dependency of the project. Does
 * nothing when it is installed.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { runCommand } from './run-command.ts';

/**
 * Pinned version of the suite: the npm tag `latest` refers to an older release line, which does not support the
 * protocol revision 2026-07-28.
 */
const VERSION = '0.2.0-alpha.12';
const FOLDER = resolve(
  import.meta.dirname,
  `../node_modules/.cache/writ-mcp-conformance-${VERSION}`,
);
const PROGRAM = join(FOLDER, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

/**
 * The program of the suite; undefined, with a notice, when it is not installed.
 * @throws Error when WRIT_REQUIRE_TOOLCHAINS is 1 and it is not installed
 */
export function requireMcpConformance(): string | undefined {
  if (existsSync(PROGRAM)) return PROGRAM;
  const notice =
    'The MCP conformance suite is not run: it is not installed (npm run mcp-conformance)';
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(notice);
  process.stderr.write(`skipped: ${notice}\n`);
  return undefined;
}

async function install(): Promise<void> {
  if (existsSync(PROGRAM)) return;
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', '--ignore-scripts'];
  const { code, output } = await runCommand(
    'npm',
    ...args,
    `@modelcontextprotocol/conformance@${VERSION}`,
  );
  if (code !== 0) throw new Error(`npm install failed:\n${output}`);
}

if (import.meta.main) await install();
