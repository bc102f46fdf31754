import { fileURLToPath } from 'node:url';
import { systemClock, type ToolContext } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { toolInvocation } from '../../test/tool-invocation.ts';
import { openLocalSource } from './local.ts';
import type { ToolInvocation } from './source.ts';

const CONTEXT: ToolContext = { dataDir: '/nowhere', variables: { KEY: 'k' }, clock: systemClock };
const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });

const MODULES = {
  shapes: new URL('../../test/modules/shapes.ts', import.meta.url),
  broken: new URL('../../test/modules/broken.ts', import.meta.url),
  empty: new URL('../../test/modules/empty.ts', import.meta.url),
  failing: new URL('../../test/modules/failing.ts', import.meta.url),
  missing: new URL('../../test/modules/missing.mjs', import.meta.url),
};

function open(module: keyof typeof MODULES, tools: readonly string[] = []) {
  return openLocalSource({
    name: 'bank',
    module: fileURLToPath(MODULES[module]),
    tools,
    place: 'tools.yaml:3:9',
    context: CONTEXT,
    log,
  });
}

function invocation(tool: string): ToolInvocation {
  const args = { to: 'anna' };
  return toolInvocation(tool, { argumentsJson: '{"to":"anna"}', args, timeoutMs: 1_000 });
}

async function answer(tool: string) {
  const source = await open('shapes');
  return await source.invoke(invocation(tool));
}

describe('a TypeScript module as a source (TG-6)', () => {
  it('passes arguments and call metadata to a tool, and variables to the module', async () => {
    const result = await answer('echo');
    expect(result).toMatchObject({
      kind: 'output',
      output: {
        kind: 'json',
        value: { args: { to: 'anna' }, key: 'idem_1', run: 'run_1', setting: 'k' },
      },
    });
  });

  it('returns the message of a ToolFailure and hides every other error (SYS-3)', async () => {
    expect(await answer('fails')).toEqual({ kind: 'failed', message: 'There is no such payee.' });
    expect(await answer('throws')).toEqual({ kind: 'failed', message: 'throws failed.' });
    expect(await answer('throwsAtOnce')).toEqual({
      kind: 'failed',
      message: 'throwsAtOnce failed.',
    });
  });

  it.each(['text', 'list', 'nothing', 'nil', 'bigint', 'cycle', 'date', 'map'])(
    'rejects %s as a result',
    async (shape) => {
      expect((await answer(shape)).kind).toBe('bad_result');
    },
  );

  it('names the module that cannot be loaded and the position of its declaration', async () => {
    await expect(open('missing')).rejects.toThrow(
      /^tools\.yaml:3:9: the module \S+missing\.mjs of the source bank cannot be loaded: /,
    );
    await expect(open('broken')).rejects.toThrow(/broken\.ts .* cannot be loaded: it breaks/);
    await expect(open('empty')).rejects.toThrow(
      /empty\.ts .* does not export a function createTools/,
    );
    await expect(open('failing')).rejects.toThrow(/failing\.ts .* failed in createTools: no key/);
  });

  it('names the tools that the module does not have', async () => {
    await expect(open('shapes', ['echo', 'pay', 'toString'])).rejects.toThrow(
      /shapes\.ts .* has no function for pay, toString\./,
    );
  });

  it('disposes the tools on close', async () => {
    const source = await open('shapes');
    await source.close();
    expect(await source.invoke(invocation('isDisposed'))).toMatchObject({
      output: { value: { disposed: true } },
    });
  });
});
