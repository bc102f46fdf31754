import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import {
  type InvokeRequest,
  ToolProviderService,
} from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import { mintWrit } from '@writ/identity';
import { sha256Hex } from '@writ/kernel';
import { type ClosableRpcClient, createRpcServer, type RpcServer, route } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { type Program, SERVICE_MAINS, startProgram } from './program.ts';

const AGENT = { name: 'payer', instance: 'payer-1' };
const TENANT = 'acme';
const HOUR_MS = 3_600_000;

/** The effect of a tool; it runs in this process, which outlives the gateway. */
export type Tool = (call: InvokeRequest) => Promise<void>;

/** A tool call that can be repeated. */
export interface ToolCall {
  readonly tool: string;
  readonly callId: string;
  /** Default `run-1`. */
  readonly runId?: string;
}

/** A call with its writ, as a worker sends it. */
export interface SignedCall {
  readonly call: {
    readonly tenant: string;
    readonly runId: string;
    readonly agentInstance: string;
    readonly callId: string;
  };
  readonly tool: string;
  readonly argumentsJson: string;
  readonly writ: string;
}

/** The tools and sources of a harness. */
export interface GatewayHarnessOptions {
  /** The entry of each tool in tools.yaml, and its effect. */
  readonly tools: Readonly<Record<string, { readonly entry: object; readonly run: Tool }>>;
  /** Settings of the sources by name; each source has its own provider in this process. */
  readonly sources: Readonly<Record<string, object>>;
}

type Gateway = ClosableRpcClient<typeof ToolGatewayService>;

/** A tool gateway process between a supervisor, a worker and tools that outlive it. */
export class GatewayHarness {
  readonly dir: string;
  readonly #stack: AsyncDisposableStack;
  readonly #supervisor: KeyPeer;
  readonly #worker: KeyPeer;
  #program: Program | undefined;
  #asWorker: Gateway | undefined;
  #digests: ReadonlyMap<string, string> = new Map();

  static async start(options: GatewayHarnessOptions): Promise<GatewayHarness> {
    const dir = await mkdtemp(join(tmpdir(), 'writ-load-'));
    const stack = new AsyncDisposableStack();
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const sources: Record<string, object> = {};
    for (const [name, settings] of Object.entries(options.sources)) {
      const provider = await serveTools(options.tools);
      stack.defer(() => provider.close(0));
      sources[name] = { kind: 'provider', address: provider.address, ...settings };
    }
    const tools = Object.entries(options.tools).map(([name, { entry }]) => ({
      name,
      description: `The tool ${name}.`,
      input_schema: { type: 'object', properties: {} },
      max_calls_per_agent: 1_000_000,
      max_repeats: 1_000_000,
      risk: 0,
      ...entry,
    }));
    await writeFile(join(dir, 'tools.yaml'), JSON.stringify({ tools, sources }));
    const supervisor = await startKeyPeer('supervisor');
    const worker = await startKeyPeer('agent-worker');
    stack.defer(() => Promise.all([supervisor.close(), worker.close()]).then(() => undefined));
    const harness = new GatewayHarness(dir, stack, supervisor, worker);
    await harness.boot();
    return harness;
  }

  private constructor(
    dir: string,
    stack: AsyncDisposableStack,
    supervisor: KeyPeer,
    worker: KeyPeer,
  ) {
    this.dir = dir;
    this.#stack = stack;
    this.#supervisor = supervisor;
    this.#worker = worker;
  }

  /** Starts the gateway process on the stored data. */
  async boot(): Promise<void> {
    this.#asWorker?.close();
    this.#program = await startProgram(SERVICE_MAINS['tool-gateway'], {
      WRIT_DATA: this.dir,
      WRIT_TOOLS_FILE: join(this.dir, 'tools.yaml'),
      WRIT_TOOL_GATEWAY_PORT: '0',
      WRIT_SUPERVISOR_ADDRESS: this.#supervisor.address,
      WRIT_AGENT_WORKER_ADDRESS: this.#worker.address,
      WRIT_LOG_LEVEL: 'silent',
    });
    const to = { audience: 'tool-gateway', address: this.#program.address } as const;
    this.#asWorker = this.#worker.client(ToolGatewayService, to);
    if (this.#digests.size > 0) return;
    const { tools } = await this.#supervisor.client(ToolGatewayService, to).listTools({});
    this.#digests = new Map(tools.map((tool) => [tool.name, tool.definitionDigest]));
  }

  /** kill -9; resolves when the process has exited. */
  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** Signs a new writ for a call. */
  async sign({ tool, callId, runId = 'run-1' }: ToolCall): Promise<SignedCall> {
    const argumentsJson = '{}';
    const { token: writ } = await mintWrit(
      this.#supervisor.signer,
      {
        tenant: TENANT,
        runId,
        agent: AGENT,
        callId,
        tool,
        definitionDigest: this.#digests.get(tool) ?? '',
        argsSha256: sha256Hex(argumentsJson),
        decisionId: 'decision-1',
        policyVersion: 'policy-1',
        executedFrom: 'original',
        allowedTools: [tool],
        sessionId: 'session-1',
      },
      HOUR_MS,
    );
    const call = { tenant: TENANT, runId, agentInstance: AGENT.instance, callId };
    return { call, tool, argumentsJson, writ };
  }

  /** The address and the service token with which another process calls as the worker. */
  async endpoint(): Promise<{ readonly address: string; readonly serviceToken: string }> {
    const address = this.#program?.address ?? '';
    return { address, serviceToken: await this.#worker.serviceToken('tool-gateway')() };
  }

  /** Calls the running gateway. */
  call(request: SignedCall): ReturnType<Gateway['callTool']> {
    if (this.#asWorker === undefined) throw new Error('The gateway is not running.');
    return this.#asWorker.callTool(request, { epoch: 1n, timeoutMs: 120_000 });
  }

  /**
   * The number of destructive calls with a recorded intent and no recorded outcome, read from the gateway's
   * database. After a restart, the gateway records an unknown outcome for each of these calls.
   */
  inFlight(): number {
    const file = new DatabaseSync(join(this.dir, 'tool-gateway.db'), { readOnly: true });
    try {
      const row = file
        .prepare(
          "select count(*) as calls from calls where state = 'intent' and side_effect = 'destructive'",
        )
        .get();
      return Number(row?.calls ?? 0);
    } finally {
      file.close();
    }
  }

  async close(): Promise<void> {
    this.#asWorker?.close();
    await this.kill();
    await this.#stack.disposeAsync();
  }
}

async function serveTools(tools: GatewayHarnessOptions['tools']): Promise<RpcServer> {
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [
      route(ToolProviderService, {
        describeTools: async () => ({ tools: [] }),
        invoke: async (call) => {
          await tools[call.tool]?.run(call);
          const result = { kind: ResultKind.JSON, content: '{"status":"done"}' };
          return { outcome: { case: 'result', value: result } };
        },
      }),
    ],
    gate: async () => ({}),
    telemetry: createTelemetry({ service: 'load', logLevel: 'silent' }),
  });
  server.setServing(true);
  return server;
}
