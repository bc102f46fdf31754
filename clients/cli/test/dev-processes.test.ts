import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createWritClient } from '@writ/client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createProject, writ } from './project-folder.ts';

const MAIN = resolve(import.meta.dirname, '../src/main.ts');
const MISTRAL = `
models:
  main: { base_url: https://api.mistral.ai/v1, api_key_env: MISTRAL_API_KEY, model: mistral-large-latest }
`;
const LIVENESS_MS = 60_000;

/** Starts `writ dev` in a folder with its output connected to pipes instead of a terminal. */
function startDev(folder: string, args: readonly string[] = []) {
  const { OPENAI_API_KEY: _, OPENAI_BASE_URL: __, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, 'dev', '--port', '0', ...args], {
    cwd: folder,
    env: { ...env, MISTRAL_API_KEY: 'key' },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const until = (pattern: RegExp, count = 1) =>
    vi.waitFor(() => expect([...text.matchAll(new RegExp(pattern, 'gm'))].length).toBe(count), {
      timeout: LIVENESS_MS,
    });
  return { child, until, text: () => text };
}

async function endedBy(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown[]> {
  const exit = once(child, 'exit');
  child.kill(signal);
  return await exit;
}

/** Waits until the parent of the process has noticed its end; until then the process id exists. */
async function untilEnded(pid: number): Promise<void> {
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: LIVENESS_MS });
}

describe('writ dev', () => {
  it('prints address, key and model to a pipe; a second command finds address and key (PE-3)', async () => {
    const { folder } = await createProject();
    const dev = startDev(folder);
    await dev.until(/^Files are watched/);
    expect(dev.text()).toMatch(/^Writ is up: project my-agents, data in \.writ/m);
    expect(dev.text()).toMatch(
      /^model +simulated by simulator\/default\.yaml, because OPENAI_API_KEY is not set$/m,
    );
    expect(dev.text()).toMatch(/^public +http:\/\/127\.0\.0\.1:\d+ /m);
    expect(dev.text()).toMatch(/^API key +in \.writ\/dev-api-key/m);
    const { out } = await writ(['agents', '-o', 'json'], { WRIT_DATA: join(folder, '.writ') });
    expect(out.join('\n')).toContain('"voucher-agent"');
    expect(await endedBy(dev.child, 'SIGTERM')).toEqual([0, null]);
    expect(existsSync(join(folder, '.writ/dev-address'))).toBe(false);
    expect(readFileSync(join(folder, '.writ/dev.log'), 'utf8')).toBe('');
  });

  it('prints the project and data folders if they differ from the defaults (PE-3)', async () => {
    const project = await createProject();
    const { folder } = project;
    const parent = dirname(folder);
    const own = startDev(parent, ['my-agents']);
    await own.until(/^Files are watched/);
    expect(own.text()).toMatch(/data in my-agents\/\.writ, log in my-agents\/\.writ\/dev\.log\.$/m);
    expect(own.text()).toMatch(/^API key .*dev-api-key, .*; writ finds it in my-agents$/m);
    expect(own.text()).toMatch(/^In a second terminal, in my-agents:\n {2}npx writ run/m);
    await endedBy(own.child, 'SIGTERM');

    project.write('models.yaml', MISTRAL);
    const other = startDev(folder, ['--data', '../other data']);
    await other.until(/^Files are watched/);
    expect(other.text()).toMatch(/^model +set in .*models\.yaml$/m);
    expect(other.text()).toMatch(/^API key .*dev-api-key, .*; writ finds it with WRIT_DATA$/m);
    const data = join(parent, 'other data');
    expect(other.text()).toContain(
      `In a second terminal, in this folder:\n  export WRIT_DATA='${data}'\n  npx writ run`,
    );
    await endedBy(other.child, 'SIGTERM');
  });

  it('serves changed agents and tools, and keeps the previous version if a change has errors (PE-3)', async () => {
    const project = await createProject();
    const { folder } = project;
    const dev = startDev(folder);
    await dev.until(/^Files are watched/);
    project.change('tools.yaml', 'risk: 0.1', 'risk: 7');
    await dev.until(/^error +tools\.yaml:13:11: .*$/);
    await dev.until(/^The platform continues with the previous version\.$/);
    const { out } = await writ(['agents'], { WRIT_DATA: join(folder, '.writ') });
    expect(out.join('\n')).toContain('voucher-agent');
    project.change('tools.yaml', 'risk: 7', 'risk: 0.1');
    project.change('agents.yaml', 'voucher-agent', 'credit-agent');
    await dev.until(/^Writ is up/, 2);
    const address = readFileSync(join(folder, '.writ/dev-address'), 'utf8').trim();
    const apiKey = readFileSync(join(folder, '.writ/dev-api-key'), 'utf8').trim();
    const { agents } = await createWritClient({ baseUrl: address, apiKey }).runs.listAgents({});
    expect(agents.map(({ name }) => name)).toEqual(['credit-agent']);
    expect(await endedBy(dev.child, 'SIGINT')).toEqual([0, null]);
  });

  it('does not restart when the platform writes to a data folder in the project (PE-3)', async () => {
    const project = await createProject();
    const dev = startDev(project.folder, ['--data', 'data']);
    await dev.until(/^Files are watched/);
    // The poll that finds this change would also find the files that the platform wrote when it started.
    project.change('agents.yaml', 'voucher-agent', 'credit-agent');
    await dev.until(/^changed /);
    expect(dev.text()).toMatch(/^changed +agents\.yaml$/m);
    await dev.until(/^Writ is up/, 2);
    await endedBy(dev.child, 'SIGTERM');
  });

  it('reports a stopped platform if its process is killed while an invalid version is checked (PE-3)', async () => {
    const project = await createProject();
    const pids = `${project.folder}.pids`;
    const change = `${project.folder}.change`;
    // Each version records its process id; loading of the second version blocks until the test has killed the first
    // process.
    const module = (next: string) => `
      import { appendFileSync, existsSync } from 'node:fs';
      appendFileSync(${JSON.stringify(pids)}, process.pid + '\\n');
      ${next}
      export default {};
    `;
    project.write('observed.mjs', module(''));
    project.change('tools.ts', 'import', "import './observed.mjs';\nimport");
    const dev = startDev(project.folder);
    await dev.until(/^Files are watched/);
    const [first = ''] = readFileSync(pids, 'utf8').split('\n');
    const wait = `while (!existsSync(${JSON.stringify(change)})) await new Promise((end) => setTimeout(end, 20));`;
    project.write('observed.mjs', module(`${wait} throw new Error('Not loaded.');`));
    await vi.waitFor(() => expect(readFileSync(pids, 'utf8')).toMatch(/\d+\n\d+/), {
      timeout: LIVENESS_MS,
    });
    process.kill(Number(first), 'SIGKILL');
    await untilEnded(Number(first));
    writeFileSync(change, '');
    await dev.until(/^The platform is not running\. It starts when a file changes\.$/);
    project.write('observed.mjs', module(''));
    await dev.until(/^Writ is up/, 2);
    expect(await endedBy(dev.child, 'SIGTERM')).toEqual([0, null]);
  });

  it('starts at the next change if the new process ends while the previous one drains (PE-3)', async () => {
    const project = await createProject();
    const pids = `${project.folder}.pids`;
    const draining = `${project.folder}.draining`;
    const drained = `${project.folder}.drained`;
    // Each process records its id; the exit of the first one blocks until the test has killed the second one.
    const recorded = `
      import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
      appendFileSync(${JSON.stringify(pids)}, process.pid + '\\n');
      export default {};
    `;
    const blocked = `${recorded}
      process.once('exit', () => {
        writeFileSync(${JSON.stringify(draining)}, '');
        const pause = new Int32Array(new SharedArrayBuffer(4));
        while (!existsSync(${JSON.stringify(drained)})) Atomics.wait(pause, 0, 0, 20);
      });
    `;
    project.write('observed.mjs', blocked);
    project.change('tools.ts', 'import', "import './observed.mjs';\nimport");
    const dev = startDev(project.folder);
    await dev.until(/^Files are watched/);
    project.write('observed.mjs', recorded);
    await vi.waitFor(() => expect(existsSync(draining)).toBe(true), { timeout: LIVENESS_MS });
    const [, second = ''] = readFileSync(pids, 'utf8').split('\n');
    process.kill(Number(second), 'SIGKILL');
    await untilEnded(Number(second));
    writeFileSync(drained, '');
    await dev.until(/^The platform ended with SIGKILL\.$/);
    await dev.until(/^The platform is not running\. It starts when a file changes\.$/);
    project.change('agents.yaml', 'voucher-agent', 'credit-agent');
    await dev.until(/^Writ is up/, 2);
    expect(await endedBy(dev.child, 'SIGTERM')).toEqual([0, null]);
  });

  it('exits with 2 and names the log that cannot be opened (PE-3, SYS-3)', async () => {
    const { folder } = await createProject();
    mkdirSync(join(folder, '.writ/dev.log'), { recursive: true });
    const dev = startDev(folder);
    expect(await once(dev.child, 'exit')).toEqual([2, null]);
    expect(dev.text()).toBe(
      `The log ${join(folder, '.writ/dev.log')} cannot be opened (EISDIR); make it a file that this user can write, or set WRIT_DATA to another folder.\n`,
    );
  });

  // Writes to /dev/full fail like those to a full disk.
  it.skipIf(!existsSync('/dev/full'))(
    'serves the project and reports once that the log cannot be written (PE-3)',
    async () => {
      const { folder } = await createProject();
      vi.stubEnv('WRIT_LOG_LEVEL', 'debug');
      mkdirSync(join(folder, '.writ'));
      symlinkSync('/dev/full', join(folder, '.writ/dev.log'));
      const dev = startDev(folder);
      await dev.until(/^Files are watched/);
      await dev.until(/^The log .*dev\.log cannot be written \(ENOSPC\)\.$/);
      const { out } = await writ(['agents'], { WRIT_DATA: join(folder, '.writ') });
      expect(out.join('\n')).toContain('voucher-agent');
      expect(await endedBy(dev.child, 'SIGTERM')).toEqual([0, null]);
      expect(dev.text().match(/cannot be written/g)).toHaveLength(1);
    },
  );

  it('exits with 2 and names the missing tool or file of an invalid project (PE-3, SYS-3)', async () => {
    const project = await createProject();
    project.change('agents.yaml', '[get_order, issue', '[get_ordr, issue');
    const dev = startDev(project.folder);
    expect(await once(dev.child, 'exit')).toEqual([2, null]);
    expect(dev.text()).toMatch(/^error +agents\.yaml:11:13: tool get_ordr does not exist/m);
    const empty = await writ(['dev', join(project.folder, 'test')]);
    expect(empty).toMatchObject({
      exit: 2,
      err: [expect.stringMatching(/has no agents\.yaml.*writ init/)],
    });
  });
});
