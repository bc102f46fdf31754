import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import {
  CORE_SERVICES,
  type CoreService,
  callerRow,
  SERVICE_NAMES,
  type ServiceName,
} from '@writ/identity';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { createTelemetry, METRICS } from '@writ/telemetry';
import { generateTestCertificates, type TestCertificates } from '@writ/testing/certificates';
import {
  type DistributedPlatform,
  freePorts,
  isDistributedPlatformAvailable,
  startDistributedPlatform,
} from '@writ/testing/distributed';
import { type OtlpReceiver, startOtlpReceiver } from '@writ/testing/otlp';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCli } from '../../clients/cli/src/cli.ts';
import { type ServedTools, serveTools } from '../../examples/refund-desk/src/serve-tools.ts';
import { Forge } from '../e2e/identities.ts';
import { INTERNAL_RPCS } from '../e2e/internal-rpcs.ts';
import { closeRawCalls, type RawTls, rawCall } from '../e2e/raw-call.ts';
import { requestFor } from '../e2e/request-for.ts';

const PATIENT = { timeout: 60_000, interval: 100 };
const HALF_AN_HOUR_S = 30 * 60;
const NAMES_A_CERTIFICATE = /[Cc]ertificate/;
const { PERMISSION_DENIED, UNAVAILABLE } = status;

/** Returns TLS settings with the certificate of a service; without a client certificate when `name` is omitted. */
function presented({ ca, certFile, keyFile }: TestCertificates, name?: ServiceName): RawTls {
  const own = name && { cert: readFileSync(certFile(name)), key: readFileSync(keyFile(name)) };
  return { ca: Buffer.from(ca), ...own };
}

describe.skipIf(!isDistributedPlatformAvailable())('services over mutual TLS', () => {
  const untrustedDir = mkdtempSync(join(tmpdir(), 'writ-untrusted-'));
  let platform: DistributedPlatform;
  let certificates: TestCertificates;
  let untrustedCerts: TestCertificates;
  let forge: Forge;
  let served: ServedTools;
  let receiver: OtlpReceiver;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const file = join(untrustedDir, 'tools.yaml');
    const tools = readFileSync(join(loadExample('refund-desk').folder, 'tools.yaml'), 'utf8');
    const provider = `desk: { kind: provider, address: "127.0.0.1:${port}" }`;
    writeFileSync(file, tools.replace(/desk: \{ kind: local.*\}/, provider));
    receiver = await startOtlpReceiver();
    const env = {
      WRIT_TOOLS_FILE: file,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.grpcUrl,
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    };
    platform = await startDistributedPlatform({ tls: true, replicas: 1, env });
    certificates = platform.certificates as TestCertificates;
    const { certFile, keyFile, caFile } = certificates;
    served = await serveTools(
      {
        host: '127.0.0.1',
        port,
        dataDir: platform.dataDir,
        gatewayAddress: addressOf('tool-gateway'),
        tls: { certFile: certFile('tool-provider'), keyFile: keyFile('tool-provider'), caFile },
      },
      createTelemetry({ service: 'refund-tools', logLevel: 'silent' }),
    );
    untrustedCerts = await generateTestCertificates(untrustedDir);
    forge = new Forge(platform.dataDir);
  }, 120_000);
  afterAll(async () => {
    closeRawCalls();
    await platform?.close();
    await served?.close();
    await receiver?.close();
    rmSync(untrustedDir, { recursive: true, force: true });
  });

  const addressOf = (service: CoreService) => platform.replica(`${service}-0`).address;
  const bearer = async (caller: ServiceName, server: CoreService) => ({
    authorization: `Bearer ${await forge.service(caller, server)}`,
  });

  /** Runs the refund desk once; returns the status and the id of the run. */
  async function runOnce() {
    const { runs } = platform.client;
    const requestId = newId('req');
    const goal = 'Refund it.';
    const agent = 'refund-worker';
    const { run } = await runs.startRun({ requestId, agent, goal, model: 'sim-auto-1000' });
    const runId = run?.runId ?? '';
    const status = await vi.waitFor(async () => {
      const { run: now } = await runs.getRun({ runId });
      expect(now?.result).toBeDefined();
      return now?.result?.status;
    }, PATIENT);
    return { runId, status };
  }

  it('run the refund desk with TLS between services, tools, NATS, PostgreSQL and clients (SYS-5, SYS-6)', async () => {
    const { runId, status } = await runOnce();
    expect(status).toBe(RunStatus.OK);
    // The gateway's events arrive only through NATS.
    await vi.waitFor(async () => {
      const events: HookEventType[] = [];
      for await (const { event } of platform.client.runs.watchRun({ runId }))
        if (event?.entry.case === 'hook') events.push(event.entry.value.type);
      expect(events).toContain(HookEventType.TOOL_END);
    }, PATIENT);
    expect(platform.edgeUrls[0]).toMatch(/^https:/);
  });

  it.each(INTERNAL_RPCS)(
    'reject %s without the certificate of a service that may call it (SYS-4, SYS-6)',
    async (_, method, server) => {
      const row = callerRow(method);
      const allowed: readonly ServiceName[] = SERVICE_NAMES.filter(
        (name) => row && 'services' in row && row.services.includes(name),
      );
      const [caller = 'supervisor'] = allowed;
      const token = await bearer(caller, server);
      const request = requestFor(method.input, { request_id: newId('req') });
      const call = async (tls: RawTls | undefined, headers: Record<string, string> = token) =>
        await rawCall(addressOf(server), method, request, headers, 2_000, tls);

      const unknownCa = { ...presented(untrustedCerts, caller), ca: Buffer.from(certificates.ca) };
      const untrusted = {
        'no TLS': undefined,
        'no certificate': presented(certificates),
        'a certificate of an unknown authority': unknownCa,
      };
      for (const [name, tls] of Object.entries(untrusted)) {
        const { code, bytes } = await call(tls);
        expect([name, code, bytes.length]).toEqual([name, UNAVAILABLE, 0]);
      }
      for (const other of SERVICE_NAMES.filter((name) => !allowed.includes(name))) {
        const tls = presented(certificates, other);
        // The server rejects this service with its own token, and with the token of a permitted caller.
        for (const headers of [await bearer(other, server), token]) {
          const { code, message, bytes } = await call(tls, headers);
          expect([other, code, bytes.length]).toEqual([other, PERMISSION_DENIED, 0]);
          expect(message).toMatch(NAMES_A_CERTIFICATE);
        }
      }
      for (const other of allowed.filter((name) => name !== caller)) {
        const { code, message } = await call(presented(certificates, other));
        expect([other, code]).toEqual([other, PERMISSION_DENIED]);
        expect(message).toMatch(NAMES_A_CERTIFICATE);
      }
      // The certificate of the caller passes the certificate check.
      const { code, message } = await call(presented(certificates, caller));
      // agent-proxy is optional and does not run here: the server answers that it cannot get the keys of agent-proxy.
      if (caller === 'agent-proxy') expect(message).toMatch(/agent-proxy/);
      else expect(code).not.toBe(UNAVAILABLE);
      expect(message).not.toMatch(NAMES_A_CERTIFICATE);
    },
  );

  it.each(CORE_SERVICES)(
    '%s serves its keys only to clients with a certificate (SYS-4)',
    async (server) => {
      const { getKeys } = KeyService.method;
      const call = async (tls: RawTls | undefined) =>
        (await rawCall(addressOf(server), getKeys, new Uint8Array(), {}, 2_000, tls)).code;
      expect(await call(undefined)).toBe(UNAVAILABLE);
      expect(await call(presented(certificates))).toBe(UNAVAILABLE);
      expect(await call(presented(certificates, 'agent-worker'))).toBe(status.OK);
    },
  );

  it("serve the supervisor's keys to a client with the supervisor's certificate, to verify the audit log (SV-8, SYS-6)", async () => {
    const out: string[] = [];
    const io = { print: (line: string) => void out.push(line), warn: () => undefined };
    const command = ['audit', 'keys', '--supervisor', addressOf('supervisor')];
    expect(await runCli(command, { ...io, env: {} })).toBe(2);
    expect(await runCli(command, { ...io, env: certificates.env('supervisor') })).toBe(0);
    expect(JSON.parse(out.join('\n'))).toMatchObject({ keys: [{ kty: 'OKP' }] });
  });

  it('reload certificates without a restart and without failing a run (SYS-6)', async () => {
    const before = await serials();
    for (const left of (await secondsLeft()).values()) expect(left).toBeGreaterThan(HALF_AN_HOUR_S);
    const inFlight = Promise.all([runOnce(), runOnce()]);
    await certificates.renew(HALF_AN_HOUR_S * 1000);
    await vi.waitFor(async () => {
      const now = await serials();
      for (const [service, serial] of now) expect(serial).not.toBe(before.get(service));
    }, PATIENT);
    const { OK } = RunStatus;
    expect((await inFlight).map(({ status }) => status)).toEqual([OK, OK]);
    expect((await runOnce()).status).toBe(OK);
    await vi.waitFor(async () => {
      for (const left of (await secondsLeft()).values())
        expect(left).toBeLessThanOrEqual(HALF_AN_HOUR_S);
    }, PATIENT);
    for (const { log } of platform.replicas)
      expect(log.join('\n')).not.toContain('keeping the previous ones');
  });

  /** The remaining validity of each service's certificate, seconds. */
  async function secondsLeft(): Promise<Map<string, number>> {
    return await vi.waitFor(() => {
      const points = receiver
        .points()
        .filter(({ metric }) => metric === METRICS.certificateExpiry.name);
      const of = (use: string) =>
        new Map(
          points.flatMap(({ service, attributes, value }) =>
            attributes['writ.certificate'] === use ? [[service, value] as const] : [],
          ),
        );
      expect([...of('edge').keys()]).toEqual(['supervisor']);
      expect([...of('authority').keys()].sort()).toEqual([...CORE_SERVICES].sort());
      expect([...of('service').keys()].sort()).toEqual([...CORE_SERVICES].sort());
      return of('service');
    }, PATIENT);
  }

  /** The serial number of the certificate that each service presents. */
  async function serials(): Promise<Map<CoreService, string>> {
    const handshakes = CORE_SERVICES.map(async (service) => {
      const [host = '', port = ''] = addressOf(service).split(':');
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const worker = presented(certificates, 'agent-worker');
      const socket = connect({ host, port: Number(port), ALPNProtocols: ['h2'], ...worker });
      socket.once('error', reject);
      socket.once('secureConnect', () => resolve(socket.getPeerCertificate().serialNumber));
      try {
        return [service, await promise] as const;
      } finally {
        socket.destroy();
      }
    });
    return new Map(await Promise.all(handshakes));
  }
});
