import { X509Certificate } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { openServiceTls, type ServiceName, type ServiceTls } from '@writ/identity';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'writ-replace-'));
  folder = join(root, 'issued');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Runs `writ certs` on the folder; returns its exit code and output. */
async function certs(...args: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(['certs', folder, ...args], {
    env: {},
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out: out.join('\n'), err: err.join('\n') };
}

const telemetry = createTelemetry({ service: 'supervisor', logLevel: 'silent' });
const serialOf = (file: string) => new X509Certificate(readFileSync(file)).serialNumber;

/** A service with its own copy of the certificate files. */
class Peer {
  readonly name: ServiceName;
  readonly #dir: string;
  readonly tls: ServiceTls;
  #peer: KeyPeer | undefined;

  constructor(name: ServiceName) {
    this.name = name;
    this.#dir = join(root, name);
    mkdirSync(this.#dir);
    this.#copy();
    this.tls = openServiceTls({
      service: name,
      certFile: join(this.#dir, `${name}.crt`),
      keyFile: join(this.#dir, `${name}.key`),
      caFile: join(this.#dir, 'ca.crt'),
      log: telemetry.log,
      pollMs: 20,
    });
  }

  async serve(): Promise<void> {
    this.#peer = await startKeyPeer(this.name, { tls: this.tls.server });
  }

  get address(): string {
    return this.#peer?.address ?? '';
  }

  /** Copies the latest files; resolves when the service has reloaded them. */
  async update(): Promise<void> {
    this.#copy();
    const now = () => [this.tls.server.files.current.cert, this.tls.server.files.current.ca];
    const files = [`${this.name}.crt`, 'ca.crt'].map((file) =>
      readFileSync(join(folder, file), 'utf8'),
    );
    await expect.poll(now).toEqual(files);
  }

  #copy(): void {
    for (const file of [`${this.name}.crt`, `${this.name}.key`, 'ca.crt'])
      copyFileSync(join(folder, file), join(this.#dir, file));
  }

  async close(): Promise<void> {
    await this.#peer?.close();
    this.tls.close();
  }
}

/** A client with a new connection and without retries. */
function fresh(from: Peer, to: Peer) {
  return createRpcClient(KeyService, {
    address: to.address,
    telemetry,
    tls: from.tls.to(to.name),
    retry: { maxAttempts: 1 },
  });
}

async function callOnce(from: Peer, to: Peer): Promise<void> {
  const client = fresh(from, to);
  try {
    await client.getKeys({});
  } finally {
    client.close();
  }
}

describe('writ certs --replace-ca', () => {
  it('rotates the CA without failing a call between two services (SYS-6)', async () => {
    expect((await certs('--trust-domain', 'example.org')).exit).toBe(0);
    copyFileSync(join(folder, 'agent-worker.crt'), join(root, 'old.crt'));
    const worker = new Peer('agent-worker');
    const supervisor = new Peer('supervisor');
    await Promise.all([worker.serve(), supervisor.serve()]);

    const failures: unknown[] = [];
    let calls = 0;
    const stop = new AbortController();
    // One client keeps its connections; the other opens a connection for each call.
    const callOn = async (from: Peer, to: Peer): Promise<void> => {
      const kept = createRpcClient(KeyService, {
        address: to.address,
        telemetry,
        tls: from.tls.to(to.name),
      });
      while (!stop.signal.aborted) {
        await Promise.all([kept.getKeys({}), callOnce(from, to)]).catch((error) =>
          failures.push(error),
        );
        calls += 2;
      }
      kept.close();
    };
    const callers = [callOn(worker, supervisor), callOn(supervisor, worker)];
    /** Waits until 20 more calls have been made, and checks that no call has failed. */
    const waitForCalls = async (): Promise<void> => {
      const before = calls;
      await expect.poll(() => calls).toBeGreaterThan(before + 20);
      expect(failures).toEqual([]);
    };
    const before = serialOf(join(folder, 'ca.crt'));
    await waitForCalls();
    for (const step of ['begin', 'issue', 'finish']) {
      const { exit, err } = await certs('--replace-ca', step);
      expect({ step, exit, err }).toEqual({ step, exit: 0, err: '' });
      // The services reload at different times.
      await worker.update();
      await waitForCalls();
      await supervisor.update();
      await waitForCalls();
    }
    stop.abort();
    await Promise.all(callers);
    expect(failures).toEqual([]);

    // The old CA is no longer trusted.
    const authority = new X509Certificate(readFileSync(join(folder, 'ca.crt')));
    expect(authority.serialNumber).not.toBe(before);
    const old = new X509Certificate(readFileSync(join(root, 'old.crt')));
    expect(old.verify(authority.publicKey)).toBe(false);
    expect(readFileSync(join(folder, 'ca.crt'), 'utf8').match(/BEGIN CERTIFICATE/g)).toHaveLength(
      1,
    );
    expect(existsSync(join(folder, 'ca-next.key'))).toBe(false);
    await Promise.all([worker.close(), supervisor.close()]);
  });

  it('prints the next command with the same certificate options (SYS-6)', async () => {
    folder = join(root, 'my certs');
    await certs('--also', 'edge', 'nats');
    const options = ['--dns', 'writ.example.org', '--ip', '192.0.2.1', '--also', 'edge', 'nats'];
    const args = ['--trust-domain', 'writ.local', ...options, '--days', '30'];
    const next = (step: string) =>
      expect.stringContaining(`run: writ certs '${folder}' --replace-ca ${step} ${args.join(' ')}`);
    expect((await certs('--replace-ca', 'begin', ...args)).out).toEqual(next('issue'));
    expect((await certs('--replace-ca', 'issue', ...args)).out).toEqual(next('finish'));
  });

  it('fails calls when a step is skipped (SYS-4)', async () => {
    await certs();
    const worker = new Peer('agent-worker');
    const supervisor = new Peer('supervisor');
    await Promise.all([worker.serve(), supervisor.serve()]);
    await callOnce(worker, supervisor);
    await certs('--replace-ca', 'begin');
    await certs('--replace-ca', 'issue');
    await worker.update();
    // The supervisor still trusts only the old CA.
    await expect(callOnce(worker, supervisor)).rejects.toMatchObject({ kind: 'unavailable' });
    await supervisor.update();
    await callOnce(worker, supervisor);
    await Promise.all([worker.close(), supervisor.close()]);
  });

  it('continues after an interruption and rejects steps out of order (SYS-4)', async () => {
    await certs('--also', 'edge');
    expect((await certs('--replace-ca', 'issue')).err).toContain('run the step begin first');
    expect((await certs('--replace-ca', 'finish')).err).toContain('run the step begin first');
    const alone = readFileSync(join(folder, 'ca.crt'));
    await certs('--replace-ca', 'begin');
    const next = serialOf(join(folder, 'ca-next.crt'));
    // The state after a crash before the bundle is written.
    writeFileSync(join(folder, 'ca.crt'), alone);
    expect((await certs('--replace-ca', 'issue')).err).toContain('run the step begin first');
    expect((await certs('--replace-ca', 'finish')).err).toContain('run the step begin first');
    expect((await certs('--replace-ca', 'begin')).exit).toBe(0);
    expect(serialOf(join(folder, 'ca-next.crt'))).toBe(next);
    expect((await certs('--replace-ca', 'begin')).err).toContain('continue with the step issue');
    expect((await certs('--replace-ca', 'finish')).err).toContain('run the step issue first');

    // The old CA still signs.
    expect((await certs('--renew')).exit).toBe(0);
    const forgotten = await certs('--replace-ca', 'issue');
    expect(forgotten.err).toContain('also has certificates for edge');
    expect((await certs('--replace-ca', 'issue', '--also', 'edge')).exit).toBe(0);
    expect(serialOf(join(folder, 'ca.crt'))).toBe(next);
    expect((await certs('--replace-ca', 'begin')).err).toContain('continue with the step finish');
    expect((await certs('--replace-ca', 'finish')).exit).toBe(0);
    expect((await certs('--renew')).exit).toBe(0);
    const authority = new X509Certificate(readFileSync(join(folder, 'ca.crt')));
    const own = new X509Certificate(readFileSync(join(folder, 'supervisor.crt')));
    expect(own.verify(authority.publicKey)).toBe(true);
  });

  it('keeps the trust domain of a folder and rejects another trust domain (SYS-4)', async () => {
    await certs('--trust-domain', 'example.org');
    await certs('--replace-ca', 'begin');
    await certs('--replace-ca', 'issue');
    const own = () => new X509Certificate(readFileSync(join(folder, 'supervisor.crt')));
    expect(own().subjectAltName).toContain('URI:spiffe://example.org/writ/supervisor');
    const other = await certs('--renew', '--trust-domain', 'example.com');
    expect(other.exit).toBe(2);
    expect(other.err).toContain('belong to trust domain example.org');
    expect((await certs('--renew', '--replace-ca', 'finish')).err).toContain('cannot be used with');
  });
});
