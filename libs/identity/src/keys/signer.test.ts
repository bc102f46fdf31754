import { execFile } from 'node:child_process';
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ManualClock } from '@writ/kernel';
import { CompactSign } from 'jose';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CLAIMS, createWorld, ISSUED, stolenKey, tempDir, tokenOf } from '../../test/fixtures.ts';
import { readCheckpoint } from '../tokens/checkpoint.ts';
import { createVerifier } from '../tokens/verifier.ts';
import { LONGEST_TTL_MS, openSigner, type Signer } from './signer.ts';
import { trustSigners } from './trust.ts';

const keyIds = (signer: Signer) => signer.publicKeys().map((key) => key.keyId);
const open = (keyDir: string) =>
  openSigner({ service: 'supervisor', keyDir, clock: new ManualClock() });
const fileOf = (keyDir: string) => join(keyDir, 'supervisor.jwks.json');

describe('signer', () => {
  it('creates a key with mode 0600 on first start and loads it on the next', async () => {
    const keyDir = join(tempDir(), 'keys');
    const first = await open(keyDir);
    expect(statSync(fileOf(keyDir)).mode & 0o777).toBe(0o600);
    expect(statSync(keyDir).mode & 0o777).toBe(0o700);
    expect(readdirSync(keyDir)).toEqual(['supervisor.jwks.json']);
    expect(keyIds(await open(keyDir))).toEqual(keyIds(first));
  });

  it('exposes public parts only', async () => {
    const [key] = (await open(tempDir())).publicKeys();
    expect(Object.keys(key?.jwk ?? {})).toEqual(['kty', 'crv', 'x']);
    expect(key?.notAfter).toBeUndefined();
  });

  it('creates one key for concurrent starts in one process', async () => {
    const keyDir = tempDir();
    const signers = await Promise.all(Array.from({ length: 8 }, () => open(keyDir)));
    expect(new Set(signers.flatMap(keyIds)).size).toBe(1);
    expect(readdirSync(keyDir)).toEqual(['supervisor.jwks.json']);
  });

  it('creates one key for concurrent starts of several processes', async () => {
    const keyDir = tempDir();
    const module = fileURLToPath(new URL('./key-file.ts', import.meta.url));
    const script = `
      const { openKeyFile } = await import(${JSON.stringify(module)});
      const [key] = await openKeyFile(${JSON.stringify(fileOf(keyDir))}, new Date(0));
      console.log(key.keyId);`;
    const start = () =>
      promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    const outputs = await Promise.all([start(), start(), start()]);
    expect(new Set(outputs.map(({ stdout }) => stdout.trim()))).toEqual(
      new Set(keyIds(await open(keyDir))),
    );
  });

  it('does not recreate an invalid key file, and names the file and the remedy (SYS-4)', async () => {
    const keyDir = tempDir();
    await open(keyDir);
    const file = fileOf(keyDir);
    const good = readFileSync(file, 'utf8');
    const [key] = JSON.parse(good).keys;
    const [other] = JSON.parse(readFileSync(await createOtherKeyFile(keyDir), 'utf8')).keys;
    const broken: Record<string, string> = {
      'it is not JSON': good.slice(0, 100),
      'it is not a JSON Web Key Set': '{}',
      'it contains no key': '{"keys":[]}',
      'its first key has no private part': JSON.stringify({ keys: [{ ...key, d: undefined }] }),
      'it contains a key twice': JSON.stringify({ keys: [key, key] }),
      'is not an Ed25519 key': JSON.stringify({ keys: [{ ...key, crv: 'P-256' }] }),
      'the kid of one of its keys': JSON.stringify({ keys: [{ ...key, kid: other.kid }] }),
      'the d of one of its keys': JSON.stringify({ keys: [{ ...key, d: 'AAAA' }] }),
      'the not_before of one': JSON.stringify({ keys: [{ ...key, not_before: 'yesterday' }] }),
      'does not match its public key': JSON.stringify({ keys: [{ ...key, d: other.d }] }),
    };
    for (const [why, text] of Object.entries(broken)) {
      writeFileSync(file, text);
      const opening = open(keyDir);
      await expect(opening, why).rejects.toMatchObject({
        reason: 'INVALID_FILE',
        metadata: { file },
      });
      await expect(opening).rejects.toThrow(why);
      await expect(opening).rejects.toThrow(/restore it from a backup, or delete it/);
      await expect(opening).rejects.not.toThrow(key.d);
      expect(readFileSync(file, 'utf8')).toBe(text);
    }
  });

  it('rejects a key file readable by others or writable by the group', async () => {
    const keyDir = tempDir();
    await open(keyDir);
    for (const mode of [0o604, 0o620, 0o644]) {
      chmodSync(fileOf(keyDir), mode);
      await expect(open(keyDir)).rejects.toThrow(`run: chmod 600 ${fileOf(keyDir)}`);
    }
    chmodSync(fileOf(keyDir), 0o440);
    await open(keyDir);
  });

  it('names a key file that cannot be read', async () => {
    const keyDir = tempDir();
    mkdirSync(fileOf(keyDir));
    await expect(open(keyDir)).rejects.toThrow(/supervisor\.jwks\.json cannot be read \(EISDIR\)/);
  });

  it('rotates: old tokens are valid until not_after of the old key, new ones are signed with the new key', async () => {
    const world = await createWorld();
    const { supervisor } = world.signers;
    const sign = () =>
      supervisor.sign('agent', {
        audience: 'execution-meter',
        claims: CLAIMS.agent,
        ttlMs: 60 * 60_000,
      });
    const before = await sign();
    const [oldId] = keyIds(supervisor);
    await supervisor.rotate({ oldKeyValidForMs: 30 * 60_000 });
    const after = await sign();
    const [newId, retiredId] = keyIds(supervisor);
    expect(retiredId).toBe(oldId);
    expect(newId).not.toBe(oldId);
    world.clock.advance(30 * 60_000 - 1);
    await world.verifier.verify('agent', before.token, ISSUED.agent);
    world.clock.advance(1);
    await expect(world.verifier.verify('agent', before.token, ISSUED.agent)).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { check: 'kid' },
    });
    await world.verifier.verify('agent', after.token, ISSUED.agent);
  });

  it('keeps a retired key valid for the longest token lifetime, and deletes its private part', async () => {
    const world = await createWorld();
    await world.signers.supervisor.rotate();
    const [, retired] = world.signers.supervisor.publicKeys();
    expect(retired?.notAfter?.getTime()).toBe(world.clock.now().getTime() + LONGEST_TTL_MS);
    const { keys } = JSON.parse(readFileSync(fileOf(world.keyDir), 'utf8'));
    expect(keys.map((key: object) => 'd' in key)).toEqual([true, false]);
    expect(keyIds(await open(world.keyDir))).toEqual(keyIds(world.signers.supervisor));
  });

  it('accepts an old checkpoint of a retired key, but no checkpoint signed after the retirement (SV-8)', async () => {
    const world = await createWorld();
    const { supervisor } = world.signers;
    const token = await tokenOf(world, 'checkpoint');
    const stolen = await stolenKey(world.keyDir, 'supervisor');
    world.clock.advance(1);
    await supervisor.rotate({ oldKeyValidForMs: 0 });
    world.clock.advance(400 * 24 * 60 * 60 * 1000);
    expect((await readCheckpoint(world.verifier, token)).claims.count).toBe(12n);
    const [, payload = ''] = token.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const iat = world.clock.now().getTime() / 1000;
    const late = await new CompactSign(Buffer.from(JSON.stringify({ ...claims, iat })))
      .setProtectedHeader({ alg: 'EdDSA', typ: 'checkpoint+jwt', kid: stolen.kid })
      .sign(stolen.key);
    await expect(readCheckpoint(world.verifier, late)).rejects.toThrow('has retired its key');
  });

  it('loads the new key of another replica on refresh', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const [one, two] = await Promise.all(
      [1, 2].map(() => openSigner({ service: 'supervisor', keyDir, clock })),
    );
    if (one === undefined || two === undefined) throw new Error('Expected two signers.');
    await one.rotate();
    clock.advance(1_000);
    await two.refresh();
    expect(keyIds(two)).toEqual(keyIds(one));
  });

  it('accepts a token of a replica that has just rotated their shared key (SV-6)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const openOne = () => openSigner({ service: 'supervisor', keyDir, clock });
    const [one, two] = [await openOne(), await openOne()];
    await two.refresh();
    await one.rotate();
    const { token } = await one.sign('agent', { ...ISSUED.agent, claims: CLAIMS.agent, ttlMs: 1 });
    const verifier = createVerifier({ trust: trustSigners(two), clock });
    await verifier.verify('agent', token, ISSUED.agent);
  });

  it('loads the new key of another replica on refresh after the clock was set back (BD-3)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const openOne = () => openSigner({ service: 'supervisor', keyDir, clock });
    const [one, two] = [await openOne(), await openOne()];
    await two.refresh();
    await one.rotate();
    clock.advance(1_000);
    clock.step(-1_000);
    await two.refresh();
    expect(keyIds(two)).toEqual(keyIds(one));
  });

  it('revokes the signing key: another replica rejects tokens of the key within a second (SV-6)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const openOne = () => openSigner({ service: 'supervisor', keyDir, clock });
    const [one, two] = [await openOne(), await openOne()];
    const verifier = createVerifier({ trust: trustSigners(two), clock });
    const sign = () =>
      one.sign('writ', { audience: 'tool-gateway', claims: CLAIMS.writ, ttlMs: 60_000 });
    const verify = ({ token }: { token: string }) =>
      verifier.verify('writ', token, { issuer: 'supervisor', audience: 'tool-gateway' });
    const before = await sign();
    await verify(before);
    const [leaked = ''] = keyIds(one);
    expect(await one.revoke(leaked)).toBe(true);
    expect(keyIds(one)).toEqual([expect.not.stringMatching(leaked), leaked]);
    const after = await sign();
    clock.advance(1_000);
    await expect(verify(before)).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { check: 'kid' },
    });
    await verify(after);
  });

  it('revokes a retired key, but never extends the validity of a key (SV-6)', async () => {
    const world = await createWorld();
    const { supervisor } = world.signers;
    const [old = ''] = keyIds(supervisor);
    await supervisor.rotate();
    const [signing] = supervisor.publicKeys();
    world.clock.advance(1_000);
    expect(await supervisor.revoke(old)).toBe(true);
    const revokedAt = world.clock.now();
    world.clock.advance(1_000);
    expect(await supervisor.revoke(old)).toBe(true);
    const [current, revoked, ...others] = supervisor.publicKeys();
    expect([current, others]).toEqual([signing, []]);
    expect(revoked?.notAfter).toEqual(revokedAt);
    expect(await supervisor.revoke('key-0')).toBe(false);
    expect(keyIds(await open(world.keyDir))).toEqual([signing?.keyId, old]);
  });

  it('keeps all keys when two replicas rotate concurrently', async () => {
    const keyDir = tempDir();
    const [one, two] = await Promise.all([open(keyDir), open(keyDir)]);
    await Promise.all([one.rotate(), two.rotate()]);
    expect(keyIds(await open(keyDir))).toHaveLength(3);
    expect(existsSync(`${fileOf(keyDir)}.lock`)).toBe(false);
  });

  it('keeps signing with its key, and leaves no temporary file, when the key file cannot be replaced (SV-6)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const problems: string[] = [];
    const options = { service: 'supervisor', keyDir, clock, rotateEveryMs: 60_000 } as const;
    const onKeyProblem = (error: Error) => void problems.push(error.message);
    const signer = await openSigner({ ...options, onKeyProblem });
    const [key] = keyIds(signer);
    clock.advance(60_000);
    // A rename onto the mount point of a mounted key file fails with EBUSY.
    vi.spyOn(fs, 'renameSync').mockImplementation(() => {
      throw Object.assign(new Error('rename'), { code: 'EBUSY' });
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });
    for (let call = 0; call < 3; call += 1) {
      await signer.sign('writ', { audience: 'tool-gateway', claims: CLAIMS.writ, ttlMs: 30_000 });
    }
    expect(keyIds(signer)).toEqual([key]);
    expect(problems).toEqual([`${fileOf(keyDir)} cannot be replaced (EBUSY).`]);
    expect(readdirSync(keyDir)).toEqual(['supervisor.jwks.json']);
  });

  it('reports a changed key file that it cannot read, once, and keeps its keys (SYS-3)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const problems: string[] = [];
    const onKeyProblem = (error: Error) => void problems.push(error.message);
    const signer = await openSigner({ service: 'supervisor', keyDir, clock, onKeyProblem });
    const [key] = keyIds(signer);
    chmodSync(fileOf(keyDir), 0o644);
    writeFileSync(fileOf(keyDir), '{}');
    const refresh = async (): Promise<void> => {
      for (let call = 0; call < 3; call += 1) {
        clock.advance(1_000);
        await signer.refresh();
      }
    };
    await refresh();
    const unreadable = expect.stringContaining('is accessible to other users');
    expect(problems).toEqual([unreadable]);
    expect(keyIds(signer)).toEqual([key]);
    // A file that is missing again is reported again.
    rmSync(fileOf(keyDir));
    await refresh();
    const [other] = keyIds(await open(keyDir));
    await refresh();
    rmSync(fileOf(keyDir));
    await refresh();
    const missing = expect.stringContaining('does not exist');
    expect(problems).toEqual([unreadable, missing, missing]);
    expect(keyIds(signer)).toEqual([other]);
  });

  it('keeps its keys while the file is missing or damaged', async () => {
    const world = await createWorld();
    for (const damage of [
      () => writeFileSync(fileOf(world.keyDir), 'x'),
      () => rmSync(fileOf(world.keyDir)),
    ]) {
      damage();
      world.clock.advance(2_000);
      await world.verifier.verify('agent', await tokenOf(world, 'agent'), ISSUED.agent);
    }
  });

  it('rejects invalid claims, naming the field', async () => {
    const signer = await open(tempDir());
    const claims = { ...CLAIMS.writ, argsSha256: 'abc' };
    const signed = signer.sign('writ', { audience: 'tool-gateway', claims, ttlMs: 1 });
    await expect(signed).rejects.toMatchObject({
      reason: 'INVALID_CLAIMS',
      metadata: { field: 'args_sha256' },
    });
  });

  it('is trusted for its own name only', async () => {
    const signer = await open(tempDir());
    const verifier = createVerifier({ trust: trustSigners(signer), clock: signer.clock });
    const { token } = await signer.sign('agent', {
      ...ISSUED.agent,
      claims: CLAIMS.agent,
      ttlMs: 1_000,
    });
    await verifier.verify('agent', token, ISSUED.agent);
    await expect(trustSigners(signer).key('tool-gateway', keyIds(signer)[0] ?? '')).rejects.toThrow(
      'is not among the trusted services',
    );
  });

  it('rotates a key at its maximum age, and tokens of the old key stay valid until they expire (SV-6)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const options = { service: 'supervisor', keyDir, clock, rotateEveryMs: 60_000 } as const;
    const signers = await Promise.all([openSigner(options), openSigner(options)]);
    const [signer] = signers;
    const verifier = createVerifier({ trust: trustSigners(signer), clock });
    const claims = { audience: 'tool-gateway', claims: CLAIMS.writ, ttlMs: 30_000 } as const;
    const expected = { issuer: 'supervisor', audience: 'tool-gateway' } as const;
    clock.advance(59_999);
    const old = await signer.sign('writ', claims);
    clock.advance(1);
    // Replicas and calls that sign concurrently create one new key.
    const fresh = await Promise.all(
      signers.flatMap((one) => Array.from({ length: 4 }, () => one.sign('writ', claims))),
    );
    expect(keyIds(signer)).toHaveLength(2);
    const kidOf = ({ token }: { token: string }) =>
      JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
    expect(new Set(fresh.map(kidOf))).toEqual(new Set([keyIds(signer)[0]]));
    expect(kidOf(old)).toBe(keyIds(signer)[1]);
    for (const { token } of [old, ...fresh]) await verifier.verify('writ', token, expected);
    clock.advance(30_000);
    await expect(verifier.verify('writ', old.token, expected)).rejects.toMatchObject({
      reason: 'TOKEN_EXPIRED',
    });
  });

  it('keeps its key when a process was killed during rotation, and reports the lock file (SYS-3)', async () => {
    const clock = new ManualClock();
    const keyDir = tempDir();
    const problems: string[] = [];
    const signer = await openSigner({
      service: 'supervisor',
      keyDir,
      clock,
      rotateEveryMs: 60_000,
      onKeyProblem: (error) => problems.push(error.reason),
    });
    clock.advance(60_000);
    writeFileSync(`${fileOf(keyDir)}.lock`, '');
    await signer.sign('writ', { audience: 'tool-gateway', claims: CLAIMS.writ, ttlMs: 30_000 });
    expect(keyIds(signer)).toHaveLength(1);
    expect(problems).toEqual(['FILE_LOCKED']);
    rmSync(`${fileOf(keyDir)}.lock`);
    clock.advance(60_000);
    await signer.sign('writ', { audience: 'tool-gateway', claims: CLAIMS.writ, ttlMs: 30_000 });
    expect(keyIds(signer)).toHaveLength(2);
  });
});

async function createOtherKeyFile(keyDir: string): Promise<string> {
  await openSigner({ service: 'tool-gateway', keyDir, clock: new ManualClock() });
  return join(keyDir, 'tool-gateway.jwks.json');
}
