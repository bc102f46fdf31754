import type { InFlightCall } from '@writ/contracts/writ/control/v1/freeze_pb';
import {
  type ListToolsResponse,
  ResolvedOutcome,
  ToolGatewayService,
  VoidState,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { CallKey, Clock, JsonObject } from '@writ/kernel';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { Logger } from '@writ/telemetry';
import type { Halt } from '../domain/halt/halt.ts';
import type { ReviewedTool } from '../domain/review/reviewed-tool.ts';
import { type EndFreeze, freezeMessage, haltFreezeMessage } from '../wire/freeze.ts';
import { FREEZE_TIMEOUT_MS, HALT_TIMEOUT_MS } from './execution-meter.ts';
import { listRegistry } from './list-registry.ts';
import { ToolCache } from './tool-cache.ts';

/** The state of a writ after VoidWrit (TG-8). */
interface VoidedWrit {
  /**
   * `receipt`: the call has an outcome. `in_flight`: it is in flight; repeat the request. `burnt`: it will never be
   * executed.
   */
  readonly state: 'receipt' | 'in_flight' | 'burnt';
  /** The receipt as JWS; empty while the call is in flight. */
  readonly receipt: string;
}

/** The outcome of a call that a person determined (TG-5). */
interface Resolution {
  readonly requestId: string;
  readonly call: CallKey;
  readonly done: boolean;
  /** A JSON object, or empty. */
  readonly resultJson: string;
  readonly resolvedBy: string;
  readonly comment: string;
}

/** A page of the registry. */
interface ToolPage {
  readonly pageSize: number;
  /** Empty for the first page. */
  readonly pageToken: string;
}

/**
 * Client of tool-gateway. Every call is idempotent. The order engine repeats the calls of orders; the client retries
 * only `resolveOutcome`, for which a person waits.
 */
export interface ToolGatewayPeer {
  /**
   * The definition of a tool, at most two seconds old while the gateway answers; undefined when it does not exist.
   * @throws UnavailableError TOOL_LIST_UNAVAILABLE when the gateway never answered (SYS-4)
   */
  tool(name: string): Promise<ReviewedTool | undefined>;
  /**
   * The JSON Schemas of the arguments of all tools, by tool.
   * @throws UnavailableError TOOL_LIST_UNAVAILABLE
   */
  toolSchemas(): Promise<Readonly<Record<string, JsonObject>>>;
  /** Returns a page of the registry. */
  listTools(page: ToolPage): Promise<ListToolsResponse>;
  /** Whether the gateway publishes tool events on the bus itself, according to its last response (HK-1). */
  readonly emitsHookEvents: boolean;
  /** Settles an approved call: returns its receipt, reports it in flight, or voids it. */
  voidWrit(call: CallKey, reason: string): Promise<VoidedWrit>;
  /** Stores the outcome that a person determined; returns the new receipt as JWS. */
  resolveOutcome(resolution: Resolution): Promise<string>;
  /** Rejects tool calls of a scope from now on. */
  freeze(order: EndFreeze): Promise<void>;
  /** Enforces a halt in its scope; returns the calls still in flight after a short wait (SV-9). */
  halt(halt: Halt): Promise<readonly InFlightCall[]>;
  /** Lifts one freeze order; returns false when there was none. */
  unfreeze(orderId: string): Promise<boolean>;
  close(): void;
}

const VOID_STATES: Readonly<Partial<Record<VoidState, VoidedWrit['state']>>> = {
  [VoidState.RECEIPT]: 'receipt',
  [VoidState.BURNT]: 'burnt',
};

/** Creates the gRPC client of tool-gateway; `log` receives unusable definitions. */
export function createToolGatewayPeer(
  options: RpcClientOptions,
  clock: Clock,
  log: Logger = options.telemetry.log,
): ToolGatewayPeer {
  const client = createRpcClient(ToolGatewayService, options);
  const cache = new ToolCache((known) => listRegistry(client, known, log), clock);
  return {
    async tool(name) {
      return (await cache.current(name)).tools.get(name);
    },
    async toolSchemas() {
      const { tools } = await cache.current();
      return Object.fromEntries([...tools].map(([name, tool]) => [name, tool.contract.schema]));
    },
    listTools: (page) => client.listTools(page),
    get emitsHookEvents() {
      return cache.emitsHookEvents;
    },
    async voidWrit(call, reason) {
      const { state, receipt } = await client.voidWrit({ call: callMessage(call), reason });
      return { state: VOID_STATES[state] ?? 'in_flight', receipt };
    },
    async resolveOutcome({ requestId, call, done, resultJson, resolvedBy, comment }) {
      const { receipt } = await client.resolveOutcome(
        {
          requestId,
          call: callMessage(call),
          outcome: done ? ResolvedOutcome.DONE : ResolvedOutcome.NOT_DONE,
          resultJson,
          resolvedBy,
          comment,
        },
        { retry: true },
      );
      return receipt;
    },
    async freeze(order) {
      await client.freeze({ order: freezeMessage(order) }, { timeoutMs: FREEZE_TIMEOUT_MS });
    },
    async halt(halt) {
      const order = haltFreezeMessage(halt);
      return (await client.freeze({ order }, { timeoutMs: HALT_TIMEOUT_MS })).inFlight;
    },
    async unfreeze(orderId) {
      return (await client.unfreeze({ orderId }, { timeoutMs: HALT_TIMEOUT_MS })).lifted;
    },
    close: () => client.close(),
  };
}

function callMessage({ tenant, runId, instance, callId }: CallKey) {
  return { tenant, runId, agentInstance: instance, callId };
}
