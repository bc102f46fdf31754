import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { type ToolsSettings, toolsYaml } from './tools-yaml.ts';
import { held } from './world.ts';

const PAY = { side_effect: 'destructive', max_calls_per_agent: 10, max_repeats: 10 } as const;
const world = { max_in_flight: 1 };

let dir: string;
let file: string;
let fixture: Fixture;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'writ-reload-'));
  file = join(dir, 'tools.yaml');
  await writeFile(file, toolsYaml({ tools: { pay: PAY }, world }));
  fixture = await startFixture({
    tools: { pay: PAY },
    toolsFile: file,
    config: { toolsPollMs: 10 },
  });
});

afterEach(async () => {
  await fixture[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

/** Changes the file and waits until the gateway lists the new tools. */
async function change(settings: ToolsSettings): Promise<void> {
  const { registryVersion: knownVersion } = await fixture.asSupervisor.listTools({});
  await writeFile(file, toolsYaml(settings));
  await vi.waitFor(async () => {
    expect((await fixture.asSupervisor.listTools({ knownVersion })).unchanged).toBe(false);
  });
}

describe('a change of tools.yaml', () => {
  it('appears in ListTools, and invalidates writs for the previous definition (TG-2)', async () => {
    const old = await fixture.request({ callId: 'op-1' });
    await change({ tools: { pay: { ...PAY, max_output_bytes: 99 } }, world });
    const { tools } = await fixture.asSupervisor.listTools({});
    expect(tools).toMatchObject([{ name: 'pay', maxOutputBytes: 99 }]);
    expect(await fixture.asWorker.callTool(old, { epoch: 1n })).toMatchObject({
      status: CallStatus.REFUSED,
      stopReason: 'tool_changed:pay',
    });
    const definitionDigest = tools[0]?.definitionDigest ?? '';
    expect(await fixture.call({ callId: 'op-2', writ: { definitionDigest } })).toMatchObject({
      status: CallStatus.OK,
    });
  });

  it('does not affect running calls, and moves waiting calls to the new source (TG-5)', async () => {
    const { behaviour, release } = held();
    fixture.world.on('pay', behaviour);
    const running = fixture.call({ callId: 'op-1' });
    await fixture.world.executed(1);
    const waiting = fixture.call({ callId: 'op-2' });
    await change({
      tools: { pay: PAY, look: { side_effect: 'read_only' } },
      world: { ...world, kind: 'provider', address: '127.0.0.1:1', module: undefined },
    });
    release({ status: 'paid' });
    expect(await running).toMatchObject({
      status: CallStatus.OK,
      result: { content: '{"status":"paid"}' },
    });
    expect(await waiting).toMatchObject({ status: CallStatus.ERROR });
    expect(fixture.world.executions).toHaveLength(1);
  });
});
