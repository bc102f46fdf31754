import { join } from 'node:path';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { callerRow, openSigner, type ServiceName, serviceTokens } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const SERVED: readonly (readonly [ServiceName, DescService])[] = [
  ['supervisor', SupervisionService],
  ['supervisor', ReviewService],
  ['spawn-budget', SpawnBudgetService],
  ['execution-meter', ExecutionMeterService],
  ['execution-meter', ModelService],
  ['tool-gateway', ToolGatewayService],
  ['agent-worker', AgentWorkerService],
];

const FORBIDDEN = SERVED.flatMap(([server, service]) =>
  service.methods
    .filter((method) => {
      const row = callerRow(method);
      return !(row !== undefined && 'services' in row && row.services.includes('agent-worker'));
    })
    .map((method) => [`${service.typeName}/${method.name}`, server, method] as const),
);

let test: TestPlatform;

beforeAll(async () => {
  test = await startTestPlatform();
});
afterAll(() => test.close());

/** Calls with an empty request: who may not call is refused before the request is looked at. */
function call(server: ServiceName, method: DescMethod, token: string | undefined): Promise<number> {
  const client = new Client(test.platform.addresses[server], credentials.createInsecure());
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  const path = `/${method.parent.typeName}/${method.name}`;
  const identity = (bytes: Buffer) => bytes;
  return new Promise<number>((answer) => {
    if (method.methodKind === 'unary') {
      client.makeUnaryRequest(path, identity, identity, Buffer.alloc(0), metadata, (error) =>
        answer(error?.code ?? status.OK),
      );
    } else {
      const stream = client.makeServerStreamRequest(
        path,
        identity,
        identity,
        Buffer.alloc(0),
        metadata,
      );
      stream.on('data', () => answer(status.OK));
      stream.on('error', (error: { code?: number }) => answer(error.code ?? status.UNKNOWN));
    }
  }).finally(() => client.close());
}

describe("a worker's token", () => {
  it.each(FORBIDDEN)('is refused on %s (SYS-4, SYS-6, SUP-9)', async (_, server, method) => {
    const signer = await openSigner({
      service: 'agent-worker',
      keyDir: join(test.dataDir, 'keys'),
      clock: systemClock,
    });
    const token = await serviceTokens(signer, { audience: server, replica: 'worker-1' })();
    expect(await call(server, method, token)).toBe(status.PERMISSION_DENIED);
  });

  it('is needed at all: without a token no RPC answers (SYS-4)', async () => {
    for (const [server, service] of SERVED) {
      for (const method of service.methods) {
        expect(await call(server, method, undefined), method.name).toBe(status.UNAUTHENTICATED);
      }
    }
  });
});
