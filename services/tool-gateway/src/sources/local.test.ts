import { fileURLToPath } from 'node:url';
import { systemClock, type ToolContext } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { openLocalSource } from './local.ts';
import type { ToolInvocation } from './source.ts';

const CONTEXT: ToolContext = { dataDir: '/nowhere', variables: { KEY: 'k' }, clock: systemClock };
const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });

function open(module: string, tools: readonly string[] = []) {
  return openLocalSource({
    name: 'desk',
    module: fileURLToPath(new URL(`../../test/modules/${module}`, import.meta.url)),
    tools,
    place: 'tools.yaml:3:9',
    context: CONTEXT,
    log,
  });
}

function invocation(tool: string): ToolInvocation {
  return {
    tool,
    argumentsJson: '{"to":"anna"}',
    args: { to: 'anna' },
    idempotencyKey: 'idem_1',
    tenant: 'acme',
    runId: 'run_1',
    agentName: 'payer',
    callId: 'op-1',
    deadline: new Date(),
    signal: new AbortController().signal,
  };
}

async function answer(tool: string) {
  const source = await open('shapes.ts');
  return await source.invoke(invocation(tool));
}

describe('a TypeScript module as a source (TG-6)', () => {
  it('gives a tool its arguments and what it may know of the call, and its settings to the module', async () => {
    const result = await answer('echo');
    expect(result).toMatchObject({
      kind: 'output',
      output: {
        kind: 'json',
        value: { args: { to: 'anna' }, key: 'idem_1', run: 'run_1', setting: 'k' },
      },
    });
  });

  it('shows the model why a tool did not do its work, and no other error (SYS-3)', async () => {
    expect(await answer('fails')).toEqual({ kind: 'failed', message: 'There is no such payee.' });
    expect(await answer('throws')).toEqual({ kind: 'failed', message: 'throws failed.' });
    expect(await answer('throwsAtOnce')).toEqual({
      kind: 'failed',
      message: 'throwsAtOnce failed.',
    });
  });

  it.each(['text', 'list', 'nothing', 'nil', 'bigint', 'cycle', 'date', 'map'])(
    'takes %s for no result',
    async (shape) => {
      expect((await answer(shape)).kind).toBe('bad_result');
    },
  );

  it('names the file that cannot be loaded, and where it is declared', async () => {
    await expect(open('missing.ts')).rejects.toThrow(
      /^tools\.yaml:3:9: the module \S+missing\.ts of the source desk cannot be loaded: /,
    );
    await expect(open('broken.ts')).rejects.toThrow(/broken\.ts .* cannot be loaded: it breaks/);
    await expect(open('empty.ts')).rejects.toThrow(/empty\.ts .* exports no function createTools/);
    await expect(open('failing.ts')).rejects.toThrow(
      /failing\.ts .* failed in createTools: no key/,
    );
  });

  it('names the tools that the module lacks', async () => {
    await expect(open('shapes.ts', ['echo', 'pay', 'toString'])).rejects.toThrow(
      /shapes\.ts .* has no function for pay, toString\./,
    );
  });

  it('disposes of tools that hold something', async () => {
    const source = await open('shapes.ts');
    await source.close();
    expect(await source.invoke(invocation('isDisposed'))).toMatchObject({
      output: { value: { disposed: true } },
    });
  });
});
