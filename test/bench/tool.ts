import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { mintWrit } from '@writ/identity';
import { sha256Hex } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { SERVICE_MAINS } from '../load/program.ts';
import type { BenchOptions } from './bench.ts';
import { openBench } from './bench-setup.ts';
import { compare } from './compare.ts';
import { median, type Operation } from './measure.ts';

const CALL = 'CallTool';
const BASELINE = 'echo + two commits';
/** Maximum p50 relative to the baseline. */
const MAX_RATIO = 2.5;
/** Writs that are signed before the measurement, because signing is the supervisor's work. */
const WRITS = 16_000;
const AGENTS = 16;
/** Calls of each of the two alternating operations. */
const TURNS = 2_000;
const TOOL = 'no_op';
const ARGUMENTS = '{"reason":"arrived broken","user_id":42}';
const HOUR_MS = 3_600_000;

const TOOLS = {
  tools: [
    {
      name: TOOL,
      description: 'Does nothing.',
      input_schema: {
        type: 'object',
        properties: { user_id: { type: 'integer' }, reason: { type: 'string' } },
        required: ['user_id', 'reason'],
      },
      side_effect: 'destructive',
      max_calls_per_agent: 1_000_000,
      max_repeats: 1_000_000,
      risk: 0,
      source: 'bench',
    },
  ],
  sources: {
    bench: {
      kind: 'local',
      module: fileURLToPath(new URL('no-op.ts', import.meta.url)),
      max_in_flight: 256,
    },
  },
};

/**
 * Measures CallTool on a tool that does nothing, with a verified writ and durable intent and outcome, and compares it
 * with one gRPC call that commits twice, in separate processes (TG-1, TG-5). Prints the figures and returns whether the
 * p50 of one call at a time is at most {@link MAX_RATIO} times that of the baseline.
 */
export async function benchTool({ profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    const { dir, start } = await openBench(stack, profileDir);
    const echo = await start(fileURLToPath(new URL('echo-server.ts', import.meta.url)), {
      ECHO_FILE: join(dir, 'echo.db'),
    });
    const [supervisor, worker] = await Promise.all([
      startKeyPeer('supervisor'),
      startKeyPeer('agent-worker'),
    ]);
    stack.defer(() => Promise.all([supervisor.close(), worker.close()]).then(() => undefined));
    const toolsFile = join(dir, 'tools.yaml');
    await writeFile(toolsFile, JSON.stringify(TOOLS));
    const { address } = await start(SERVICE_MAINS['tool-gateway'], {
      WRIT_DATA: dir,
      WRIT_TOOL_GATEWAY_PORT: '0',
      WRIT_TOOLS_FILE: toolsFile,
      WRIT_SUPERVISOR_ADDRESS: supervisor.address,
      WRIT_AGENT_WORKER_ADDRESS: worker.address,
      WRIT_LOG_LEVEL: 'error',
    });
    const telemetry = createTelemetry({ service: 'bench', logLevel: 'silent' });
    const baseline = createRpcClient(KeyService, { address: echo.address, telemetry });
    stack.defer(() => baseline.close());
    const twice: Operation = () => baseline.getKeys({ keyId: 'two-commits' });
    const call = await prepare(supervisor, worker, address);
    const results = await compare({
      echo: () => baseline.getKeys({}),
      [BASELINE]: twice,
      [CALL]: call,
    });
    return verdict(await alternate(call, twice), results.p50Ratio(CALL, BASELINE, 64));
  } finally {
    await stack.disposeAsync();
  }
}

/** Signs the writs and returns the operation that executes the next call. */
async function prepare(supervisor: KeyPeer, worker: KeyPeer, address: string): Promise<Operation> {
  const to = { audience: 'tool-gateway', address } as const;
  const listed = await supervisor.client(ToolGatewayService, to).listTools({ names: [TOOL] });
  const definitionDigest = listed.tools[0]?.definitionDigest ?? '';
  const argsSha256 = sha256Hex(ARGUMENTS);
  const gateway = worker.client(ToolGatewayService, to);
  const sign = async (n: number) => {
    const call = {
      tenant: 'acme',
      runId: `run-${n % AGENTS}`,
      agentInstance: 'payer-1',
      callId: `op-${n}`,
    };
    const { token: writ } = await mintWrit(
      supervisor.signer,
      {
        tenant: call.tenant,
        runId: call.runId,
        agent: { name: 'payer', instance: call.agentInstance },
        callId: call.callId,
        tool: TOOL,
        definitionDigest,
        argsSha256,
        decisionId: 'decision-1',
        policyVersion: 'policy-1',
        executedFrom: 'original',
        allowedTools: [TOOL],
        sessionId: 'session-1',
      },
      HOUR_MS,
    );
    return { call, tool: TOOL, argumentsJson: ARGUMENTS, writ };
  };
  const requests: Awaited<ReturnType<typeof sign>>[] = [];
  for (let n = 0; n < WRITS; n += 1) requests.push(await sign(n));
  let next = 0;
  return async () => {
    next += 1;
    const request = requests.pop() ?? (await sign(WRITS + next));
    const { status } = await gateway.callTool(request, { epoch: 1n });
    if (status !== CallStatus.OK) throw new Error(`A call ended with the status ${status}.`);
  };
}

/**
 * Returns the ratio between the p50 latencies of `operation` and `baseline`; their calls alternate, so that other load
 * affects both equally.
 */
async function alternate(operation: Operation, baseline: Operation): Promise<number> {
  const times: [number[], number[]] = [[], []];
  for (let n = 0; n < TURNS; n += 1) {
    for (const [index, one] of [operation, baseline].entries()) {
      const started = performance.now();
      await one(n);
      times[index]?.push(performance.now() - started);
    }
  }
  return median(times[0]) / median(times[1]);
}

function verdict(alone: number, crowded: number): boolean {
  const isEnough = alone <= MAX_RATIO;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: ${CALL} takes ${alone.toFixed(2)} times the p50 of ${BASELINE} (maximum ${MAX_RATIO}), and ${crowded.toFixed(2)} times at 64 in flight.`,
  );
  return isEnough;
}
