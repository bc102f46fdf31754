import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type DescMethod, fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import { Health } from '@writ/contracts/grpc/health/v1/health_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import type { RefusedAttempt } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import {
  CallToolRequestSchema,
  CallToolResponseSchema,
  ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { isWritError, sha256Hex } from '@writ/kernel';
import { type CallOptions, createRpcClient } from '@writ/rpc';
import { mismatch } from './mismatch.ts';
import { AS_CONTRACT, receiptClaims, receiptFault } from './receipt-rules.ts';
import { listServices } from './reflection.ts';
import { type CaseNames, callerHeaders, runOf, type SentCall, toSentCall } from './sent-call.ts';
import type { GatewayUnderTest, Stage } from './stage.ts';
import type { CallFields, Case, Step } from './table.ts';

/** What a case runs against. */
export interface CaseSetting {
  readonly stage: Stage;
  readonly gateway: GatewayUnderTest;
  readonly names: CaseNames;
  /** The folder that the paths of a table start from. */
  readonly folder: string;
  /** Resolves when the gateway was killed and is back. */
  restart(): Promise<void>;
}

/** What an RPC said, in the form of the contract; an error as `error`, `reason`, `field`, `message`. */
interface Answer {
  readonly view: JsonObject;
  /** The receipt as it came; `view.receipt` holds its claims. */
  readonly token?: string;
}

interface Started {
  readonly answer: Promise<Answer>;
  readonly gone: AbortController;
}

type AnyCall = (request: unknown, options: CallOptions) => Promise<never>;

/** One case under way. */
export class CaseRun {
  readonly #setting: CaseSetting;
  readonly #answers = new Map<string, Answer>();
  readonly #started = new Map<string, Started>();
  readonly #orders = new Set<string>();
  /** By call: the digest of the arguments that came first, and the ids of all writs. */
  readonly #sent = new Map<string, { readonly digest: string; readonly writIds: Set<string> }>();

  constructor(setting: CaseSetting) {
    this.#setting = setting;
  }

  /**
   * Takes every step, and leaves no order in force. Rejects with one phrase that names the step and
   * what was wrong.
   */
  async run({ steps }: Case): Promise<void> {
    try {
      for (const [at, step] of steps.entries()) {
        const fault = await this.#take(step).catch((error: unknown) => said(error));
        if (fault !== undefined) throw new Error(`step ${at + 1}: ${fault}`);
      }
    } finally {
      await this.#liftOrders();
    }
    const fault = this.#executionFault();
    if (fault !== undefined) throw new Error(fault);
  }

  async #take(step: Step): Promise<string | undefined> {
    const answer = await this.#act(step);
    if (typeof answer === 'string') return answer;
    if (answer !== undefined && step.as !== undefined) this.#answers.set(step.as, answer);
    const { same_receipt_as: label, ...expected } = step.expect ?? {};
    const fault = answer && mismatch(answer.view, expected);
    if (fault !== undefined) return fault;
    if (typeof label === 'string' && answer?.token !== this.#answers.get(label)?.token) {
      return `the receipt is not the one of ${label}`;
    }
    const { executed } = step;
    const count = this.#executions().length;
    if (executed === undefined || executed === count) return undefined;
    return `tools were executed ${count} times, not ${executed}`;
  }

  async #act(step: Step): Promise<Answer | string | undefined> {
    const { stage, gateway, names, folder } = this.#setting;
    if (step.call !== undefined) return await this.#call(step.call);
    if (step.start !== undefined) return this.#start(step.start, step.as ?? '');
    if (step.finish !== undefined) return await this.#startedAs(step.finish).answer;
    if (step.leave !== undefined) {
      this.#startedAs(step.leave).gone.abort();
      return undefined;
    }
    if (step.rpc !== undefined) return await this.#rpc(step.rpc, step);
    if (step.restart === true) return await this.#setting.restart().then(() => undefined);
    if (step.runs !== undefined) {
      await stage.world.executed(this.#nameOf(step.runs), step.runs.times ?? 1);
      return undefined;
    }
    if (step.answer !== undefined) {
      stage.world.release(this.#nameOf(step.answer), step.answer);
      return undefined;
    }
    if (step.told !== undefined) {
      const { signal } = await stage.world.executed(this.#nameOf(step.told), 1);
      await stage.world.until(() => signal.aborted || undefined, 'the tool to be called off');
      return undefined;
    }
    if (step.reported !== undefined) {
      const { token = '' } = this.#answers.get(step.reported) ?? {};
      const twice = () => (stage.reported.get(token) ?? 0) >= 2 || undefined;
      await stage.world.until(twice, 'the receipt to be reported, and again');
      return undefined;
    }
    if (step.refusal_reported !== undefined) {
      const { reason, ...call } = step.refusal_reported;
      const { tenant, runId, callId } = this.#nameOf(call);
      const isIt = (one: RefusedAttempt): boolean =>
        one.tenant === tenant &&
        one.runId === runId &&
        one.callId === callId &&
        one.reason === reason &&
        one.writSha256 !== '';
      const find = () => Array.from(stage.refusals.values()).find(isIt);
      await stage.world.until(find, `the refusal of ${callId} to be reported`);
      return undefined;
    }
    if (step.health !== undefined) return await health(gateway, step.health);
    if (step.reflection !== undefined) {
      const services = await listServices(gateway.address);
      return { view: Object.fromEntries(services.map((name) => [name, true])) };
    }
    if (step.args_hash_vectors !== undefined) {
      return await this.#vectors(resolve(folder, step.args_hash_vectors));
    }
    return `it has no action that is known to ${names.id}`;
  }

  async #call(fields: CallFields): Promise<Answer> {
    const sent = this.#prepare(fields);
    const { times = 1 } = fields;
    if (times === 1) return await this.#send(sent);
    const answers = await Promise.all(Array.from({ length: times }, () => this.#send(sent)));
    const fresh = answers.filter(({ view }) => view.replayed === false);
    const [answer = answers[0]] = fresh;
    const receipts = new Set(answers.map(({ token }) => token));
    return {
      ...answer,
      view: { ...answer?.view, fresh_answers: fresh.length, receipts: receipts.size },
    };
  }

  #start(fields: CallFields, label: string): undefined {
    const gone = new AbortController();
    const answer = this.#send(this.#prepare(fields), gone.signal);
    // Whoever finishes it is told.
    answer.catch(() => undefined);
    this.#started.set(label, { answer, gone });
  }

  #startedAs(label: string): Started {
    const started = this.#started.get(label);
    if (started === undefined) throw new Error(`nothing was started as ${label}`);
    return started;
  }

  #prepare(fields: CallFields): SentCall {
    const { stage, names } = this.#setting;
    const sent = toSentCall(stage, names, fields);
    const { call, arguments_json } = sent.request;
    const name = { tenant: call.tenant, runId: call.run_id, callId: call.call_id };
    if (fields.tool_does !== undefined) stage.world.script(name, fields.tool_does);
    const key = keyOf(sent);
    const known = this.#sent.get(key) ?? {
      digest: sha256Hex(arguments_json),
      writIds: new Set<string>(),
    };
    known.writIds.add(sent.writId);
    this.#sent.set(key, known);
    return sent;
  }

  async #send(sent: SentCall, signal?: AbortSignal): Promise<Answer> {
    const { gateway } = this.#setting;
    return await answered(async () => {
      const { headers, request } = sent;
      const message = fromJson(CallToolRequestSchema, request);
      const response = await gateway.client.callTool(message, { headers, signal });
      const view = toJson(CallToolResponseSchema, response, AS_CONTRACT) as JsonObject;
      const receipt = await receiptClaims(gateway, response.receipt);
      const writIds = this.#sent.get(keyOf(sent))?.writIds ?? new Set();
      const fault = receiptFault(receipt, view, sent, writIds);
      if (fault !== undefined) throw new Error(fault);
      return { view: { ...view, receipt }, token: response.receipt };
    });
  }

  /** Any RPC of the gateway beside CallTool; `tenant`, `run_id` and `order_id` are the case's own. */
  async #rpc(name: string, step: Step): Promise<Answer> {
    const { stage, gateway } = this.#setting;
    const service = name in KeyService.method ? KeyService : ToolGatewayService;
    const method: DescMethod | undefined = service.methods.find(
      ({ localName }) => localName === name,
    );
    if (method === undefined) throw new Error(`there is no RPC ${name}`);
    const by = step.by ?? 'supervisor';
    const headers = {
      ...callerHeaders(stage, by, step.audience ?? 'tool-gateway'),
      ...(by === 'worker' ? { 'writ-epoch': '1' } : {}),
      ...(step.agent_token && { 'writ-agent-token': this.#agentToken(step.agent_token) }),
    };
    const client = createRpcClient(service, gateway);
    try {
      return await answered(async () => {
        const request = fromJson(method.input, this.#owned(step.request ?? {}) as JsonObject);
        const call = client[name as keyof typeof client] as unknown as AnyCall;
        const response = await call(request, { headers, timeoutMs: 15_000 });
        const view = toJson(method.output, response, AS_CONTRACT) as JsonObject;
        const { receipt: token } = view;
        if (typeof token !== 'string' || token === '') return { view };
        return { view: { ...view, receipt: await receiptClaims(gateway, token) }, token };
      });
    } finally {
      client.close();
    }
  }

  async #liftOrders(): Promise<void> {
    for (const orderId of this.#orders) {
      await this.#rpc('unfreeze', { request: { order_id: orderId } });
    }
  }

  #agentToken(claims: Readonly<Record<string, unknown>>): string {
    const { stage, names } = this.#setting;
    const agent = { name: 'payer', instance: 'payer-1' };
    const own = {
      ...runOf(names, {}),
      session_id: 'session_1',
      agent,
      priority: 'PRIORITY_NORMAL',
    };
    const said = { ...own, ...claims };
    return stage.supervisor.token({
      kind: 'agent',
      audience: 'tool-gateway',
      subject: said.agent.instance,
      claims: said,
      ttlMs: 60_000,
    });
  }

  /** The request with the names of this case; `call` may leave out all that is as usual. */
  #owned(value: unknown, key = ''): unknown {
    const { names } = this.#setting;
    if (Array.isArray(value)) return value.map((item: unknown) => this.#owned(item));
    if (typeof value === 'string') {
      if (key === 'order_id') this.#orders.add(value);
      return ['tenant', 'run_id', 'order_id'].includes(key) ? `${value}-${names.id}` : value;
    }
    if (typeof value !== 'object' || value === null) return value;
    if (key === 'call') {
      const { agent = 'payer-1', call_id = 'op-1', ...rest } = value as CallFields;
      return { ...runOf(names, rest), agent_instance: agent, call_id };
    }
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, this.#owned(item, name)]),
    );
  }

  /** Each vector's arguments, and then the same as the vector's own text spells them (TG-4). */
  async #vectors(file: string): Promise<string | undefined> {
    const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as {
      readonly vectors: readonly { name: string; args: unknown; text: string; hash: string }[];
    };
    const seen = new Set<string>();
    const calls = vectors.flatMap(({ name, args, text, hash }, at) =>
      [`{"value":${JSON.stringify(args)}}`, `{ "value" : ${text} }`].map((spelled, spelling) => {
        const isRepeat = seen.has(hash);
        seen.add(hash);
        const call = { tool: 'echo', call_id: `v-${at}-${spelling}`, arguments_json: spelled };
        const wanted = sha256Hex(`{"value":${text}}`).slice(0, 12);
        return { name: `${name}, spelling ${spelling + 1}`, call, isRepeat, wanted };
      }),
    );
    const fault = async (repeats: boolean): Promise<string | undefined> => {
      const made = calls
        .filter(({ isRepeat }) => isRepeat === repeats)
        .map(async ({ name, call, wanted }) => {
          const { view } = await this.#call(call);
          const repeated = {
            stop_reason: 'loop_detected:signature_repeat',
            repetition: { args_hash: wanted },
          };
          const differs = mismatch(view, repeats ? repeated : { stop_reason: '' });
          return differs && `${name}: ${differs}`;
        });
      return (await Promise.all(made)).find((what) => what !== undefined);
    };
    return (await fault(false)) ?? (await fault(true));
  }

  #nameOf({ call_id: callId, run }: { readonly call_id: string; readonly run?: string }) {
    const own = runOf(this.#setting.names, run === undefined ? {} : { run });
    return { tenant: own.tenant, runId: own.run_id, callId };
  }

  #executions() {
    return this.#setting.stage.world.executionsOf(this.#setting.names.id);
  }

  /** What every execution must be: of the bytes that were signed, under the one key of its call (TG-1, TG-5). */
  #executionFault(): string | undefined {
    const callOfKey = new Map<string, string>();
    const keysOfCall = new Map<string, Set<string>>();
    for (const { request } of this.#executions()) {
      const { tenant, tool, runId, callId, idempotencyKey, argumentsJson, deadline } = request;
      const call = `${tenant}/${runId}/${callId}`;
      // A tool is not told which instance of an agent calls.
      const sent = Array.from(this.#sent).filter(([key]) => key.startsWith(`${call}/`));
      if (!sent.some(([, { digest }]) => digest === sha256Hex(argumentsJson))) {
        return `${tool} got other argument bytes than were signed`;
      }
      if (deadline === undefined) return `${tool} was not told its deadline`;
      const keys = (keysOfCall.get(call) ?? new Set()).add(idempotencyKey);
      keysOfCall.set(call, keys);
      if (keys.size > sent.length) return `${callId} was run again under another idempotency key`;
      if ((callOfKey.get(idempotencyKey) ?? call) !== call) {
        return `${callId} was run under the idempotency key of another call`;
      }
      callOfKey.set(idempotencyKey, call);
    }
    return undefined;
  }
}

function keyOf({ request: { call } }: SentCall): string {
  return `${call.tenant}/${call.run_id}/${call.call_id}/${call.agent_instance}`;
}

async function health({ address, telemetry }: GatewayUnderTest, service: string): Promise<Answer> {
  const client = createRpcClient(Health, { address, telemetry, timeoutMs: 5_000 });
  try {
    return await answered(async () => {
      const { status } = await client.check({ service });
      return { view: { serving: status === 1 } };
    });
  } finally {
    client.close();
  }
}

async function answered(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!isWritError(error)) throw error;
    const { kind, reason, message, metadata } = error;
    return { view: { error: kind, reason, message, field: metadata.field ?? '' } };
  }
}

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
