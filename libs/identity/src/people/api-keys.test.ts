import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ManualClock } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../../test/fixtures.ts';
import { apiKeyId, newApiKey, openApiKeys } from './api-keys.ts';
import { DEVELOPER, devApiKey } from './dev-api-key.ts';
import { API_KEYS_FILE, DEV_API_KEY_FILE } from './key-files.ts';

const ANN: Person = { subject: 'ann', tenant: 'acme', roles: ['approver'] };

describe('API keys', () => {
  it('are returned once and stored as hashes with mode 0600 (SYS-6)', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const apiKeys = openApiKeys({ file });
    const key = await apiKeys.create(ANN);
    expect(key).toMatch(/^writ_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$/);
    expect(apiKeys.verify(key)).toEqual(ANN);
    const text = readFileSync(file, 'utf8');
    expect(text).not.toContain(key.slice(-43));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.stringify(apiKeys.list())).not.toContain('sha256');
    expect(openApiKeys({ file }).verify(key)).toEqual(ANN);
  });

  it('are rejected when a character of id or secret differs', async () => {
    const apiKeys = openApiKeys({ file: join(tempDir(), 'api-keys.json') });
    expect(apiKeys.verify('')).toBeUndefined();
    const key = await apiKeys.create(ANN);
    const other = await apiKeys.create({ ...ANN, subject: 'bob' });
    for (const at of [5, 16, 18, 40, 60]) {
      const changed = key.slice(0, at) + (key[at] === 'a' ? 'b' : 'a') + key.slice(at + 1);
      expect(apiKeys.verify(changed), changed).toBeUndefined();
    }
    expect(apiKeys.verify(key.slice(0, 18) + other.slice(18))).toBeUndefined();
    expect(apiKeys.verify(`${key} `)).toBeUndefined();
  });

  it('created or revoked by another process take effect within a second', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const clock = new ManualClock();
    const server = openApiKeys({ file, clock });
    const cli = openApiKeys({ file, clock });
    const key = await cli.create(ANN);
    clock.advance(1_000);
    expect(server.verify(key)).toEqual(ANN);
    const [info] = cli.list();
    expect(await cli.revoke(info?.id ?? '')).toBe(true);
    expect(await cli.revoke(info?.id ?? '')).toBe(false);
    clock.advance(1_000);
    expect(server.verify(key)).toBeUndefined();
  });

  it('revoked by another process are rejected even after the clock was set back (BD-3)', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const clock = new ManualClock();
    const server = openApiKeys({ file, clock });
    const cli = openApiKeys({ file, clock });
    const key = await cli.create(ANN);
    expect(server.verify(key)).toEqual(ANN);
    await cli.revoke(apiKeyId(key) ?? '');
    clock.advance(1_000);
    clock.step(-1_000);
    expect(server.verify(key)).toBeUndefined();
  });

  it('of the role agent are bound to one agent, and to no other role (AP-1)', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const bot: Person = { subject: 'bot', tenant: 'acme', roles: ['agent'], agent: 'support-bot' };
    const apiKeys = openApiKeys({ file });
    const key = await apiKeys.create(bot);
    expect(openApiKeys({ file }).verify(key)).toEqual(bot);
    expect(apiKeys.list()).toMatchObject([{ id: apiKeyId(key), agent: 'support-bot' }]);
    const { agent: _, ...unbound } = bot;
    const wrong: readonly Person[] = [
      unbound,
      { ...bot, agent: 'Support Bot' },
      { ...bot, roles: ['agent', 'caller'] },
      { ...ANN, agent: 'support-bot' },
    ];
    for (const person of wrong) {
      await expect(async () => apiKeys.create(person)).rejects.toMatchObject({
        reason: 'INVALID_ROLES',
      });
    }
    // A file that grants an additional role is rejected, too.
    const forged = readFileSync(file, 'utf8').replace('"agent"\n', '"agent", "admin"\n');
    writeFileSync(file, forged);
    expect(() => openApiKeys({ file })).toThrow('one of its keys is malformed');
  });

  it('are all stored when created concurrently', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const instances = [openApiKeys({ file }), openApiKeys({ file }), openApiKeys({ file })];
    await Promise.all(instances.map((apiKeys) => apiKeys.create(ANN)));
    expect(openApiKeys({ file }).list()).toHaveLength(3);
  });

  it('that are passed as unsaved are accepted only by this process and not stored (SYS-6)', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const key = newApiKey();
    const unsaved = new Map([[key, ANN]]);
    const apiKeys = openApiKeys({ file, unsaved });
    const saved = await apiKeys.create({ ...ANN, subject: 'bob' });
    expect(apiKeys.verify(key)).toEqual(ANN);
    expect(apiKeys.verify(saved)).toMatchObject({ subject: 'bob' });
    expect(apiKeys.verify(`${key.slice(0, -1)}${key.endsWith('A') ? 'B' : 'A'}`)).toBeUndefined();
    expect(apiKeys.list()).toMatchObject([{ subject: 'bob' }]);
    expect(openApiKeys({ file }).verify(key)).toBeUndefined();
  });

  it('are rejected while their file is damaged (SYS-4)', async () => {
    const file = join(tempDir(), 'api-keys.json');
    const clock = new ManualClock();
    const unreadable: unknown[] = [];
    const onUnreadable = (error: unknown) => void unreadable.push(error);
    const apiKeys = openApiKeys({ file, clock, onUnreadable });
    const key = await apiKeys.create(ANN);
    for (const text of ['{', '{}', '{"keys":[{"id":"x"}]}']) {
      writeFileSync(file, text);
      clock.advance(1_000);
      for (let call = 0; call < 3; call += 1) {
        expect(() => apiKeys.verify(key)).toThrow('The API keys cannot be read.');
      }
      expect(() => openApiKeys({ file })).toThrow(`${file} is not a valid API key file`);
    }
    // The problem is reported once for each version of the file, for the log of the supervisor.
    const problem = { message: expect.stringContaining(`${file} is not a valid API key file`) };
    expect(unreadable).toEqual([1, 2, 3].map(() => expect.objectContaining(problem)));
  });

  it('require a subject, a tenant and a role', async () => {
    const apiKeys = openApiKeys({ file: join(tempDir(), 'api-keys.json') });
    await expect(apiKeys.create({ ...ANN, subject: '' })).rejects.toMatchObject({
      reason: 'INVALID_SUBJECT',
    });
    await expect(apiKeys.create({ ...ANN, tenant: 'A B' })).rejects.toMatchObject({
      reason: 'INVALID_ID',
    });
    await expect(apiKeys.create({ ...ANN, roles: [] })).rejects.toMatchObject({
      reason: 'INVALID_ROLES',
    });
  });
});

describe('development key', () => {
  it('is created once, with mode 0600 and the roles caller, approver, admin and operator', async () => {
    const dir = tempDir();
    const [key, again] = await Promise.all([devApiKey(dir), devApiKey(dir)]);
    expect(again).toBe(key);
    expect(await devApiKey(dir)).toBe(key);
    expect(statSync(join(dir, DEV_API_KEY_FILE)).mode & 0o777).toBe(0o600);
    const apiKeys = openApiKeys({ file: join(dir, API_KEYS_FILE) });
    expect(apiKeys.list()).toHaveLength(1);
    expect(apiKeys.verify(key)).toEqual({
      subject: 'developer',
      tenant: 'default',
      roles: ['caller', 'approver', 'admin', 'operator'],
    });
  });

  it('is registered again when api-keys.json was lost, but dev-api-key was not', async () => {
    const dir = tempDir();
    const key = await devApiKey(dir);
    rmSync(join(dir, API_KEYS_FILE));
    expect(await devApiKey(dir)).toBe(key);
    expect(openApiKeys({ file: join(dir, API_KEYS_FILE) }).verify(key)).toEqual(DEVELOPER);
  });

  it('is replaced by another key after it was revoked, and stays revoked (SYS-6)', async () => {
    const dir = tempDir();
    const file = join(dir, API_KEYS_FILE);
    const revoked = await devApiKey(dir);
    await openApiKeys({ file }).revoke(apiKeyId(revoked) ?? '');
    const [key, again] = await Promise.all([devApiKey(dir), devApiKey(dir)]);
    const apiKeys = openApiKeys({ file });
    expect(apiKeys.verify(revoked)).toBeUndefined();
    expect(apiKeys.verify(key)).toEqual(DEVELOPER);
    expect(again).toBe(key);
    expect(apiKeys.list()).toHaveLength(1);
    expect(readFileSync(join(dir, DEV_API_KEY_FILE), 'utf8')).toBe(`${key}\n`);
    expect(statSync(join(dir, DEV_API_KEY_FILE)).mode & 0o777).toBe(0o600);
  });

  it('is created in a folder that has other keys', async () => {
    const dir = tempDir();
    const file = join(dir, API_KEYS_FILE);
    const other = await openApiKeys({ file }).create(ANN);
    const key = await devApiKey(dir);
    const apiKeys = openApiKeys({ file });
    expect(apiKeys.verify(key)).toEqual(DEVELOPER);
    expect(apiKeys.verify(other)).toEqual(ANN);
  });

  it('is not recreated when its file does not contain an API key', async () => {
    const dir = tempDir();
    writeFileSync(join(dir, DEV_API_KEY_FILE), 'hello', { mode: 0o600 });
    await expect(devApiKey(dir)).rejects.toThrow('dev-api-key contains no API key; delete it');
  });

  it('names the lock file that a killed process left (SYS-3)', async () => {
    const dir = tempDir();
    const lock = join(dir, `${API_KEYS_FILE}.lock`);
    writeFileSync(lock, '');
    await expect(devApiKey(dir)).rejects.toMatchObject({
      reason: 'FILE_LOCKED',
      message: expect.stringContaining(`if none is running, remove ${lock}`),
    });
  });
});
