import { resolve } from 'node:path';
import { createWritClient } from '@writ/client';
import { expect, it } from 'vitest';
import { Program } from './program.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');

it.each(['SIGTERM', 'SIGINT'] as const)(
  'npm start ends with %s to npm, and leaves no process behind (SYS-5)',
  async (signal) => {
    const npm = new Program('npm', ['--prefix', REPOSITORY, 'start', '--', '--no-demo']);
    const [, baseUrl = ''] =
      /public {4}(http:\S+)/.exec(await npm.printed(/Stop with Ctrl-C/)) ?? [];
    npm.child.kill(signal);
    const { stderr } = await npm.ended;
    // A clean stop prints no warning of the platform.
    expect(stderr).not.toContain('"level"');
    const { runs } = createWritClient({ baseUrl, apiKey: 'none' });
    await expect(runs.listRuns({})).rejects.toMatchObject({ kind: 'unavailable' });
  },
);
