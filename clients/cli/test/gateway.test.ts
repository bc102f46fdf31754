import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { route, unimplemented } from '@writ/rpc';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

const ANYWHERE = ['supervisor', 'worker', 'tools'].flatMap((name) => [`--${name}`, '127.0.0.1:0']);

let credulous: KeyPeer;

beforeAll(async () => {
  const notHere = unimplemented('Not by this gateway.');
  credulous = await startKeyPeer('tool-gateway', {
    routes: [
      route(ToolGatewayService, {
        // To anybody, whoever asks.
        listTools: async () => ({ tools: [{ name: 'pay' }], registryVersion: '1' }),
        callTool: notHere,
        getReceipt: notHere,
        voidWrit: async () => ({}),
        resolveOutcome: async () => ({}),
        freeze: async () => ({}),
        unfreeze: async () => ({}),
      }),
    ],
  });
});
afterAll(() => credulous.close());

async function verify(address: string, ...options: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(['gateway', 'verify', address, ...ANYWHERE, ...options], {
    env: {},
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}

describe('writ gateway verify', () => {
  it('says of each case whether it holds, and fails a gateway that trusts anybody (TG-7, SYS-6)', async () => {
    const { exit, out } = await verify(credulous.address, '--only', 'service');
    expect(exit).toBe(1);
    const line = (text: string) => out.find((one) => one.includes(text));
    expect(line('tools.yaml declares it')).toMatch(/^FAIL {2}registry: .*\(TG-6\): it is absent/);
    expect(line('lets no worker unfreeze')).toMatch(/^FAIL .*\(SYS-6\): step 1: error is absent/);
    expect(line('publishes its keys')).toMatch(/^pass {2}service: .*\(TG-8\)$/);
    expect(out.at(-1)).toMatch(/^\n\d+ passed, \d+ failed, 0 skipped$/);
  });

  it('tells what the gateway must be started with, before it looks for it (TG-7)', async () => {
    const { exit, out, err } = await verify('127.0.0.1:1', '--wait', '0');
    expect(exit).toBe(2);
    expect(out.join('\n')).toMatch(/supervisor +127\.0\.0\.1:\d+ +WRIT_SUPERVISOR_ADDRESS/);
    expect(err).toEqual(['Nothing at 127.0.0.1:1 served within 0 s.']);
  });

  it('waits for a number of seconds, and for nothing else (SYS-3)', async () => {
    const { exit, err } = await verify('127.0.0.1:1', '--wait', 'long');
    expect(exit).toBe(2);
    expect(err[0]).toMatch(/--wait.*It must be a number of seconds\.$/);
  });

  it('names the tables that there are when none is named so (SYS-3)', async () => {
    const { exit, err } = await verify(credulous.address, '--only', 'weather');
    expect(exit).toBe(2);
    expect(err[0]).toMatch(/^No table is named weather; there are .*crashes.*writ-checks\.$/);
  });
});
