// Started and killed by orders.ts: the whole platform, which can hold the supervisor's calls to its peers.
import { EventEmitter } from 'node:events';
import { type DescMessage, fromBinary, toJson } from '@bufbuild/protobuf';
import { Client, type ClientUnaryCall } from '@grpc/grpc-js';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { JsonValue } from '@writ/kernel';
import { startTestPlatform } from '@writ/testing/platform';
import { FAMILY } from '../e2e/scripted/family.ts';

/** Messages of this process. */
export type PlatformMessage =
  | {
      readonly kind: 'started';
      readonly edgeUrl: string;
      readonly apiKey: string;
      readonly addresses: Readonly<Record<string, string>>;
    }
  /** The first attempt of a call to a peer. */
  | { readonly kind: 'call'; readonly runId: string; readonly call: string }
  /** The order is blocked at this point until the process is killed. */
  | { readonly kind: 'held'; readonly runId: string; readonly stop: string };

/** The points at which the next runs are held, one per run. */
export interface HoldCommand {
  readonly stops: readonly string[];
}

type Unary = (
  path: string,
  serialize: (bytes: Buffer) => Buffer,
  deserialize: (bytes: Buffer) => Buffer,
  request: Buffer,
  metadata: object,
  options: object,
  callback: (error: unknown, response?: Buffer) => void,
) => ClientUnaryCall;

const PEERS = [SpawnBudgetService, ExecutionMeterService, ToolGatewayService, AgentWorkerService];
const INPUTS = new Map<string, DescMessage>(
  PEERS.flatMap(({ typeName, methods }) =>
    methods.map((method) => [`/${typeName}/${method.name}`, method.input] as const),
  ),
);

/** Hold points that are not yet assigned to a run. */
const unassignedStops: string[] = [];
/** The hold point of each run. */
const stops = new Map<string, string | undefined>();
/** Call ids by run and method; a retry has the same id. */
const ids = new Map<string, string[]>();

const send = (message: PlatformMessage): boolean | undefined => process.send?.(message);

const { prototype } = Client as unknown as { prototype: { makeUnaryRequest: Unary } };
const makeUnaryRequest = prototype.makeUnaryRequest;
prototype.makeUnaryRequest = function (this: Client, ...args) {
  const [path, serialize, deserialize, request, metadata, options, callback] = args;
  const known = callOf(path, request);
  if (known === undefined) return makeUnaryRequest.apply(this, args);
  const { runId, call } = known;
  const stop = stops.get(runId);
  const holdAt = (moment: string) => {
    if (stop !== moment) return false;
    send({ kind: 'held', runId, stop });
    return true;
  };
  if (holdAt(`before ${call}`)) return heldCall();
  const answered: typeof callback = (error, response) => {
    if (error !== null || !holdAt(`after ${call}`)) callback(error, response);
  };
  return makeUnaryRequest.call(
    this,
    path,
    serialize,
    deserialize,
    request,
    metadata,
    options,
    answered,
  );
};

/** A call that is never sent, and emits nothing. */
function heldCall(): ClientUnaryCall {
  return Object.assign(new EventEmitter(), {
    cancel: () => undefined,
    getPeer: () => '',
    getAuthContext: () => null,
  });
}

/** Identifies a call of a run by a name that is the same in every run. */
function callOf(path: string, request: Buffer): { runId: string; call: string } | undefined {
  const input = INPUTS.get(path);
  if (input === undefined) return undefined;
  const message = toJson(input, fromBinary(input, request));
  const runId = textAt(message, ['runId']);
  const id = textAt(message, ['requestId', 'orderId', 'callId']);
  if (runId === undefined || id === undefined) return undefined;
  if (!stops.has(runId)) stops.set(runId, unassignedStops.shift());
  const method = path.slice(path.lastIndexOf('.') + 1).replace('/', '.');
  const seen = ids.get(`${runId} ${method}`) ?? [];
  ids.set(`${runId} ${method}`, seen);
  const isNew = !seen.includes(id);
  if (isNew) seen.push(id);
  const call = `${method} ${seen.indexOf(id) + 1}`;
  if (isNew) send({ kind: 'call', runId, call });
  return { runId, call };
}

/** Returns the first string field with one of these names. */
function textAt(value: JsonValue, names: readonly string[]): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (names.includes(name) && typeof inner === 'string') return inner;
    const found = textAt(inner as JsonValue, names);
    if (found !== undefined) return found;
  }
  return undefined;
}

process.on('message', (command: HoldCommand) => {
  unassignedStops.push(...command.stops);
});

// Without the parent process, no process would end this one.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));

const dataDir = process.env.WRIT_DATA ?? '';
// Calls are held in the gRPC client, which in-memory calls bypass.
const env = { WRIT_LOOPBACK: 'grpc' };
const { platform } = await startTestPlatform({ dataDir, files: FAMILY, env });
const { edgeUrl, apiKey, addresses } = platform;
send({ kind: 'started', edgeUrl, apiKey, addresses });
