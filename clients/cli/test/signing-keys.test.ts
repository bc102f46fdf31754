import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { openSigner, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import { START, useTestCommands } from './test-commands.ts';

const { platform, writ, detached, pending } = useTestCommands();

interface Key {
  readonly service: string;
  readonly keyId: string;
  readonly notBefore: string;
  readonly notAfter?: string;
}

/** Runs a command of `writ signing-keys` and returns the keys that it prints. */
async function keysOf(...args: string[]): Promise<readonly Key[]> {
  const { exit, out } = await writ(['signing-keys', ...args, '--output', 'json']);
  expect(exit).toBe(0);
  return (JSON.parse(out.join('\n')) as { keys: Key[] }).keys;
}

/** Returns the id of the signing key of a service. */
async function signingKey(service: string): Promise<string> {
  const keys = await keysOf('list');
  return keys.find((key) => key.service === service && key.notAfter === undefined)?.keyId ?? '';
}

/** Revokes the signing key of a service, and waits until the running service has reloaded its keys. */
async function revoke(service: ServiceName): Promise<void> {
  const leaked = await signingKey(service);
  const [current, revoked] = await keysOf('revoke', service, '--key', leaked);
  expect(current?.keyId).not.toBe(leaked);
  expect(revoked).toMatchObject({ keyId: leaked, notAfter: current?.notBefore });
  const client = createRpcClient(KeyService, {
    address: platform().platform.addresses[service],
    telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
    health: 'unchecked',
  });
  onTestFinished(() => client.close());
  // GetKeys reads a changed key file at once.
  const { keys } = await client.getKeys({});
  expect(keys[0]?.keyId).toBe(current?.keyId);
}

describe('writ signing-keys', () => {
  it('lists the keys of every service without their private parts (SYS-6)', async () => {
    const { exit, out } = await writ(['signing-keys', 'list']);
    expect(exit).toBe(0);
    const keyDir = join(platform().dataDir, 'keys');
    const known = SERVICE_NAMES.filter((name) => out.some((line) => line.startsWith(`${name}  `)));
    expect(known).toEqual(SERVICE_NAMES);
    const signer = await openSigner({ service: 'supervisor', keyDir, clock: systemClock });
    const [key] = signer.publicKeys();
    const created = key?.notBefore.toISOString();
    expect(out).toContain(`supervisor  ${key?.keyId}  from ${created}  signing`);
  });

  it('rotates a key; signatures of the old key stay valid for 30 days (SV-6)', async () => {
    const old = await signingKey('tool-gateway');
    const [current, previous, ...others] = await keysOf('rotate', 'tool-gateway');
    expect(others).toEqual([]);
    expect(current?.notAfter).toBeUndefined();
    expect(previous?.keyId).toBe(old);
    const left = Date.parse(previous?.notAfter ?? '') - Date.parse(current?.notBefore ?? '');
    expect(left).toBe(30 * 24 * 60 * 60 * 1000);
  });

  it.each(SERVICE_NAMES.filter((name) => name !== 'supervisor'))(
    'revokes the key of %s; runs in progress complete (SV-6)',
    async (service) => {
      const runId = await detached('sim-escalate-1200');
      const approvalId = await pending(runId);
      await revoke(service);
      expect((await writ(['approvals', 'edit', approvalId, 'amount_usd=700'])).exit).toBe(0);
      expect((await writ(['runs', 'watch', runId])).exit).toBe(0);
    },
  );

  it('revokes the key of the supervisor; runs in progress can be cancelled, and new ones complete (SV-6)', async () => {
    const runId = await detached('sim-escalate-1200');
    await pending(runId);
    await revoke('supervisor');
    const cancelled = await writ(['runs', 'cancel', runId]);
    expect([cancelled.exit, cancelled.err]).toEqual([0, []]);
    const watched = await writ(['runs', 'watch', runId]);
    expect(watched.out.join('\n')).toContain('cancelled');
    const next = await writ([...START, 'sim-auto-1000']);
    expect([next.exit, next.err]).toEqual([0, []]);
  });

  it('expires a retired key earlier, and leaves the signing key and an expired key unchanged (SV-6)', async () => {
    const old = await signingKey('spawn-budget');
    const [current] = await keysOf('rotate', 'spawn-budget');
    const [after, revoked] = await keysOf('revoke', 'spawn-budget', '--key', old);
    expect(after).toEqual(current);
    expect(Date.parse(revoked?.notAfter ?? '')).toBeLessThanOrEqual(Date.now());
    expect(await keysOf('revoke', 'spawn-budget', '--key', old)).toContainEqual(revoked);
  });

  it('rejects an unknown key, an unknown service and a folder without keys, and creates no key (SYS-3)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-no-keys-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const unknown = await writ(['signing-keys', 'revoke', 'supervisor', '--key', '-key0']);
    expect([unknown.exit, unknown.err]).toEqual([1, ['Key -key0 of supervisor does not exist.']]);
    expect((await writ(['signing-keys', 'rotate', 'scheduler'])).err.join()).toContain(
      'supervisor',
    );
    for (const args of [
      ['list'],
      ['rotate', 'supervisor'],
      ['revoke', 'supervisor', '--key', 'key-0'],
    ]) {
      const { exit, err } = await writ(['signing-keys', ...args, '--data', folder]);
      expect(exit).toBe(2);
      expect(err.join()).toMatch(/\.jwks\.json does not exist; set --data to the data folder/);
    }
    expect(await writ(['signing-keys', 'list', '--data', folder])).toMatchObject({ exit: 2 });
  });
});
