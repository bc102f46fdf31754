import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { publishable } from '../../scripts/packages/public-packages.ts';
import { STAGED } from '../../scripts/packages/stage.ts';
import { runCommand } from '../../scripts/run-command.ts';
import { createOutside, type Outside } from './outside.ts';
import { startRegistry } from './registry.ts';
import { readTutorial } from './tutorial.ts';

const LIVENESS_MS = 300_000;
const USER_PACKAGES = [...publishable().values()].filter(({ isForUsers }) => isForUsers);
const IMPORTS = `
import { createWritClient } from '@writ/client';
import { HookManager } from '@writ/hooks';
import { defineAgent, ToolFailure, type Tools } from '@writ/sdk';
import { startTestProject } from '@writ/testing';
import { createAgent, openProject, startPlatform } from 'writ';

const tools: Tools = { now: async () => ({ ok: true }) };
const agent = createAgent({ name: 'clerk', kind: 'custom', async run(_, { goal }) { return goal; } });
const all = [createWritClient, HookManager, defineAgent, ToolFailure, startTestProject, openProject, startPlatform];
console.log(agent.name, Object.keys(tools), all.every((each) => typeof each === 'function'));
`;

let outside: Outside;
let project: string;

/**
 * Packs the packages, and installs those for users in a project with TypeScript and Node 22; later installs use the npm
 * cache.
 */
beforeAll(async () => {
  const { code, output } = await runCommand('node', 'scripts/pack.ts');
  expect(code, output).toBe(0);
  outside = createOutside(await startRegistry(STAGED));
  project = join(outside.folder, 'importing');
  const names = USER_PACKAGES.map(({ name }) => name).join(' ');
  mkdirSync(project);
  const manifest = { private: true, type: 'module', allowScripts: { node: true } };
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest));
  const install = await outside.run(
    `npm install ${names} typescript@7.0.2 @types/node@22 node@22`,
    { cwd: project },
  );
  expect(install.code, install.output).toBe(0);
  writeFileSync(join(project, 'imports.ts'), IMPORTS);
}, LIVENESS_MS);

afterAll(async () => {
  await outside?.registry.close();
  outside?.close();
});

describe('the packages for npm', () => {
  it.each(USER_PACKAGES)(
    'publint and attw report no problems in $name (PE-3)',
    { timeout: LIVENESS_MS },
    async ({ name, exports }) => {
      const file = name.replace('@', '').replace('/', '-');
      const publint = await runCommand('publint', join(STAGED, file), '--strict');
      expect(publint.code, publint.output).toBe(0);
      // A package that provides only a command has no types.
      if (Object.keys(exports).length === 0) return;
      const tarball = readdirSync(STAGED).find(
        (each) => each.startsWith(`${file}-0`) && each.endsWith('.tgz'),
      );
      const attw = await runCommand('attw', join(STAGED, tarball ?? ''), '--profile', 'esm-only');
      expect(attw.code, attw.output).toBe(0);
    },
  );

  it.each([
    ['nodenext', '--module nodenext'],
    ['bundler', '--module esnext --moduleResolution bundler'],
  ])('type-check in a project with %s (PE-3)', { timeout: LIVENESS_MS }, async (_, options) => {
    const { code, output } = await outside.run(
      `npx tsc --noEmit --strict --target es2023 --types node ${options} imports.ts`,
      { cwd: project },
    );
    expect(code, output).toBe(0);
  });

  it.each([
    ['22', 'npx --yes writ init my-agents'],
    ['24', 'npm create --yes writ my-agents'],
  ])(
    'run in Node %s, with the test of a project that "%s" creates (PE-3)',
    { timeout: LIVENESS_MS },
    async (version, create) => {
      const node = version === '22' ? join(project, 'node_modules/.bin/node') : process.execPath;
      const shown = await outside.run('node --version && node imports.ts', { cwd: project, node });
      expect(shown.output).toMatch(new RegExp(`^v${version}\\.`));
      expect(shown.output).toContain("clerk [ 'now' ] true");
      const cwd = join(outside.folder, `node-${version}`);
      const created = await outside.run(
        `${create} && cd my-agents && npm install && npm test && npx tsc`,
        { cwd, node },
      );
      expect(created.code, created.output).toBe(0);
      expect(created.output).toMatch(/pass 2/);
      const folder = join(cwd, 'my-agents');
      const checked = await outside.run('npx writ doctor --no-platform', { cwd: folder, node });
      expect(checked.output).toMatch(/^ok +files: /);
      expect(checked.output).not.toContain('Warning');
    },
  );
});

describe('docs/tutorial/own-agent.md', () => {
  const { files, commands } = readTutorial();

  it('has less than 40 lines of configuration and sets no variable (PE-3)', () => {
    const yaml = files.filter(({ file }) => file.endsWith('.yaml'));
    expect(yaml.map(({ file }) => file)).toEqual([
      'agents.yaml',
      'tools.yaml',
      'policy.yaml',
      'simulator/default.yaml',
    ]);
    const lines = yaml.flatMap(({ text }) => text.trimEnd().split('\n'));
    expect(lines.length).toBeLessThan(40);
    expect(commands.join('\n')).not.toMatch(/\bexport\b|^\w+=|\bWRIT_/m);
  });

  it('leads to the first approval in less than 5 minutes, word for word (PE-3)', {
    timeout: 2 * LIVENESS_MS,
  }, async () => {
    const started = performance.now();
    const home = join(outside.folder, 'tutorial');
    const folder = join(home, 'my-agents');
    const [create = '', tidy = '', serve = '', run = '', decide = '', read = ''] = commands;
    const created = await outside.run(`set -e\n${create}`, { cwd: home });
    expect(created.code, created.output).toBe(0);
    expect((await outside.run(tidy, { cwd: folder })).code).toBe(0);
    for (const { file, text } of files) writeFileSync(join(folder, file), text);

    const dev = outside.start(`set -e\n${serve}`, { cwd: folder });
    onTestFinished(async () => void (await dev.stop()));
    const up = vi.waitFor(() => expect(dev.output()).toContain('Files are watched'), LIVENESS_MS);
    // When the platform fails to start, the command ends and prints the reason.
    await Promise.race([up, dev.ended]);
    expect(dev.output()).toContain('Files are watched');
    expect(dev.output()).toMatch(/^ok +files: /m);
    const agent = outside.start(run, { cwd: folder });
    const id = await vi.waitFor(() => {
      const [, approval = ''] = /To decide: writ approvals get (\S+?),/.exec(agent.output()) ?? [];
      expect(approval, agent.output()).not.toBe('');
      return approval;
    }, LIVENESS_MS);
    const decided = await outside.run(`set -e\n${decide.replaceAll('APPROVAL', id)}`, {
      cwd: folder,
    });
    expect(decided.code, decided.output).toBe(0);
    const ended = await agent.ended;
    expect(ended.code, ended.output).toBe(0);
    expect(ended.output).toMatch(/^success: /m);
    expect(performance.now() - started).toBeLessThan(5 * 60_000);

    const reading = await outside.run(`set -e\n${read}`, { cwd: folder });
    expect(reading.code, reading.output).toBe(0);
    expect(reading.output).toContain('expense-agent');
    const [paid = ''] = readdirSync(join(folder, '.writ'), {
      recursive: true,
      encoding: 'utf8',
    }).filter((name) => /paid-.*json$/.test(name));
    expect(JSON.parse(readFileSync(join(folder, '.writ', paid), 'utf8'))).toEqual({
      claim: 4,
      amount_usd: 100,
    });
    expect((await dev.stop()).output).not.toMatch(/error|warning/i);
  });
});
