import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '@writ/contracts/grpc/health/v1/health_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { describe, expect, it } from 'vitest';
import { createRpcClient, route } from '../src/index.ts';
import { drained, KEY, rejection, runRoute, START, start, TRANSPORTS } from './fixture.ts';

const BUF = fileURLToPath(new URL('../../../node_modules/.bin/buf', import.meta.url));
const SERVICE = 'writ.run.v1.RunService';

const keyRoute = route(KeyService, {
  getKeys: async ({ keyId }) => ({ service: 'supervisor', keys: [{ keyId }] }),
});

/** Calls a method using reflection only; resolves with the output of buf. */
async function curl(address: string, method: string, data: unknown, ...flags: string[]) {
  const url = `http://${address}/${method}`;
  const args = ['curl', '--protocol', 'grpc', '--http2-prior-knowledge', ...flags];
  const run = promisify(execFile)(BUF, [...args, '-d', JSON.stringify(data), url]);
  const { stdout } = await run.catch((failed: { stderr: string }) => ({ stdout: failed.stderr }));
  return stdout;
}

const parsedLines = (text: string): unknown[] =>
  text
    .trim()
    .split(/\n(?=\{)/)
    .map((each) => JSON.parse(each));

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('serves unary and streaming methods to buf curl by reflection alone (SYS-2)', async () => {
    const routes = [
      keyRoute,
      runRoute({
        async *watchRun({ runId }) {
          yield { event: { sequence: 1n, agent: { name: runId } } };
          yield { event: { sequence: 2n } };
        },
      }),
    ];
    const { address } = await start(transport, {}, { routes });
    const authorized = ['--header', `authorization: Bearer ${KEY}`];
    const [keys, events, invalid, health, listed] = await Promise.all([
      curl(address, 'writ.identity.v1.KeyService/GetKeys', { key_id: 'k1' }, ...authorized),
      curl(address, `${SERVICE}/WatchRun`, { run_id: 'run-1' }, ...authorized),
      curl(address, `${SERVICE}/StartRun`, { ...START, goal: '' }, ...authorized),
      curl(address, 'grpc.health.v1.Health/Check', { service: SERVICE }),
      curl(address, 'grpc.reflection.v1.ServerReflection/ServerReflectionInfo', {
        list_services: '*',
      }),
    ]);
    expect(JSON.parse(keys)).toEqual({ service: 'supervisor', keys: [{ keyId: 'k1' }] });
    expect(parsedLines(events)).toEqual([
      { event: { sequence: '1', agent: { name: 'run-1' } } },
      { event: { sequence: '2' } },
    ]);
    expect(JSON.parse(invalid)).toMatchObject({
      code: 'invalid_argument',
      message: 'goal: must be at least 1 characters',
    });
    expect(JSON.parse(health)).toEqual({ status: 'SERVING' });
    expect(JSON.parse(listed).listServicesResponse.service).toEqual([
      { name: 'grpc.health.v1.Health' },
      { name: 'grpc.reflection.v1.ServerReflection' },
      { name: 'grpc.reflection.v1alpha.ServerReflection' },
      { name: 'writ.identity.v1.KeyService' },
      { name: SERVICE },
    ]);
  });

  it('finds descriptors by symbol, file and extension in both reflection versions (SYS-2)', async () => {
    const { address } = await start(transport, {});
    for (const version of ['v1', 'v1alpha']) {
      const method = `grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
      const lookups = [
        { file_containing_symbol: `${SERVICE}.StartRun` },
        { file_containing_symbol: 'google.rpc.ErrorInfo' },
        { file_containing_symbol: 'writ.run.v1.RUN_STATE_COMPLETED' },
        { file_by_filename: 'buf/validate/validate.proto' },
        {
          file_containing_extension: {
            containing_type: 'google.protobuf.FieldOptions',
            extension_number: 1159,
          },
        },
        { all_extension_numbers_of_type: 'google.protobuf.FieldOptions' },
        { file_containing_symbol: 'unknown.Service' },
        {},
      ];
      const requests = lookups.map((each) => JSON.stringify(each)).join('\n');
      const [symbol, rpcType, value, file, extension, numbers, unknown, nothing] = parsedLines(
        await curlStream(address, method, requests),
      );
      const found = {
        fileDescriptorResponse: {
          fileDescriptorProto: expect.arrayContaining([expect.any(String)]),
        },
      };
      for (const each of [symbol, rpcType, value, file, extension])
        expect(each).toMatchObject(found);
      expect(numbers).toMatchObject({
        allExtensionNumbersResponse: {
          baseTypeName: 'google.protobuf.FieldOptions',
          extensionNumber: expect.arrayContaining([1159]),
        },
      });
      expect(unknown).toMatchObject({ errorResponse: { errorCode: 5 } });
      expect(nothing).toMatchObject({ errorResponse: { errorCode: 3 } });
    }
  });

  it('reports the health of the server and each service, NOT_SERVING at first (SYS-2)', async () => {
    const { server, telemetry, address } = await start(transport, {});
    server.setServing(false);
    const health = createRpcClient(Health, { address, telemetry, health: 'responding' });
    const check = async (service: string) => (await health.check({ service })).status;
    expect(await check('')).toBe(ServingStatus.NOT_SERVING);
    server.setServing(true);
    expect(await check('')).toBe(ServingStatus.SERVING);
    expect(await check(SERVICE)).toBe(ServingStatus.SERVING);
    expect((await health.list({})).statuses).toEqual({
      '': expect.objectContaining({ status: ServingStatus.SERVING }),
      [SERVICE]: expect.objectContaining({ status: ServingStatus.SERVING }),
    });
    expect(await rejection(check('unknown.Service'))).toMatchObject({ kind: 'not_found' });
    health.close();
  });

  it('streams every health change, including the last one before the server closes (SYS-2)', async () => {
    const { server, address } = await start(transport, {});
    server.setServing(false);
    const health = createClient(Health, createGrpcTransport({ baseUrl: `http://${address}` }));
    const unknown = health.watch({ service: 'unknown.Service' })[Symbol.asyncIterator]();
    expect((await unknown.next()).value?.status).toBe(ServingStatus.SERVICE_UNKNOWN);
    const stream = health.watch({ service: SERVICE })[Symbol.asyncIterator]();
    const next = async () => (await stream.next()).value?.status;
    expect(await next()).toBe(ServingStatus.NOT_SERVING);
    server.setServing(true);
    expect(await next()).toBe(ServingStatus.SERVING);
    const closed = server.close(5000);
    server.setServing(true);
    expect(await next()).toBe(ServingStatus.NOT_SERVING);
    expect((await drained({ [Symbol.asyncIterator]: () => stream })).error).toBeDefined();
    await closed;
  });

  it('records no spans or log lines for health and reflection calls (SYS-1)', async () => {
    const { address, spans, lines, telemetry } = await start(transport, {});
    const silent = createRpcClient(Health, { address, telemetry });
    await silent.check({});
    silent.close();
    expect(spans.spans().filter(({ kind }) => kind === 'server')).toEqual([]);
    expect(lines()).toEqual([]);
  });
});

async function curlStream(address: string, method: string, requests: string): Promise<string> {
  const flags = ['curl', '--protocol', 'grpc', '--http2-prior-knowledge', '-d', '@-'];
  const url = `http://${address}/${method}`;
  return new Promise((resolve, reject) => {
    const child = execFile(BUF, [...flags, url], (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
    child.stdin?.end(requests);
  });
}
