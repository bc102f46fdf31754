import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';

const KERNEL = resolve(import.meta.dirname, '../../kernel');
const SENTENCE = `
  import { pathToFileURL } from 'node:url';
  import { loadFailure } from ${JSON.stringify(join(import.meta.dirname, 'load-failure.ts'))};
  const [, module] = process.argv;
  await import(pathToFileURL(module).href).then(
    () => console.log('loaded'),
    (error) => console.log(loadFailure(module, error)),
  );`;

describe('a module of a user that cannot be loaded', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'writ-module-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  });

  const write = (name: string, text: string) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  /**
   * Returns the message that a separate process prints, because the test runner transforms modules that Node would
   * reject.
   */
  async function sentence(module: string): Promise<string> {
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', SENTENCE];
    const { stdout } = await promisify(execFile)(process.execPath, [...args, module]);
    return stdout.trim();
  }

  it.each(["import 'node:fs';", 'export const tools = [];'])(
    'is reported with the package.json that makes it CommonJS: %s (SYS-3)',
    async (text) => {
      const manifest = write('package.json', '{ "type": "commonjs" }');
      const module = write('tools.ts', text);
      expect(await sentence(module)).toBe(
        `it uses import or export and is read as CommonJS; set "type": "module" in ${manifest}`,
      );
      write('package.json', '{ "type": "module" }');
      expect(await sentence(module)).toBe('loaded');
    },
  );

  it('is reported with the command that installs a missing package (SYS-3)', async () => {
    write('package.json', '{ "type": "module" }');
    const ours = write('agents.ts', "import '@writ/kernel';");
    expect(await sentence(ours)).toBe(
      `${ours} imports the package @writ/kernel, which is not installed; run npm install ${KERNEL} in ${folder}`,
    );
    mkdirSync(join(folder, 'lib'));
    const other = write('lib/mail.ts', "import 'no-such-package';");
    expect(await sentence(write('tools.ts', "import './lib/mail.ts';"))).toBe(
      `${other} imports the package no-such-package, which is not installed; run npm install no-such-package in ${folder}`,
    );
  });

  it('is reported with the first line of any other error (SYS-3)', async () => {
    expect(await sentence(write('tools.mjs', "throw new Error('No key.\\nMore.');"))).toBe(
      'No key',
    );
  });
});
