import { resolve } from 'node:path';
import { fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import type { RefusedAttempt } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import {
  CallToolRequestSchema,
  CallToolResponseSchema,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type Answer, answered } from './answer.ts';
import { readVectorCalls } from './args-hash-vectors.ts';
import { CaseRpcs } from './case-rpcs.ts';
import type { GatewayUnderTest } from './gateway-under-test.ts';
import { isServing } from './health.ts';
import { mismatch } from './mismatch.ts';
import { AS_CONTRACT, receiptClaims, receiptFault } from './receipt-rules.ts';
import { listServices } from './reflection.ts';
import { type CaseNames, runOf, type SentCall, toSentCall } from './sent-call.ts';
import { SentCalls } from './sent-calls.ts';
import type { CallFields, Case, Step } from './table.ts';
import type { TestPeers } from './test-peers.ts';

/** Environment of a case. */
export interface CaseSetting {
  readonly peers: TestPeers;
  readonly gateway: GatewayUnderTest;
  readonly names: CaseNames;
  /** Base folder of the paths in a table. */
  readonly folder: string;
  /** Kills the gateway; resolves when it serves again. */
  restart(): Promise<void>;
}

interface Started {
  readonly answer: Promise<Answer>;
  readonly caller: AbortController;
}

/** The run of one case. */
export class CaseRun {
  readonly #setting: CaseSetting;
  readonly #answers = new Map<string, Answer>();
  readonly #started = new Map<string, Started>();
  readonly #sent = new SentCalls();
  readonly #rpcs: CaseRpcs;

  constructor(setting: CaseSetting) {
    this.#setting = setting;
    this.#rpcs = new CaseRpcs(setting.peers, setting.gateway, setting.names);
  }

  /**
   * Runs every step, and lifts every freeze at the end. Rejects with the number of the failed step and the problem, or
   * with the first problem of the executions.
   */
  async run({ steps }: Case): Promise<void> {
    try {
      for (const [at, step] of steps.entries()) {
        const fault = await this.#runStep(step).catch((error: unknown) => messageOf(error));
        if (fault !== undefined) throw new Error(`step ${at + 1}: ${fault}`);
      }
    } finally {
      await this.#rpcs.liftOrders();
    }
    const fault = this.#sent.fault(this.#executions());
    if (fault !== undefined) throw new Error(fault);
  }

  async #runStep(step: Step): Promise<string | undefined> {
    const answer = await this.#act(step);
    if (typeof answer === 'string') return answer;
    if (answer !== undefined && step.as !== undefined) this.#answers.set(step.as, answer);
    const { same_receipt_as: label, ...expected } = step.expect ?? {};
    const fault = answer && mismatch(answer.view, this.#withAnswers(expected));
    if (fault !== undefined) return fault;
    if (typeof label === 'string' && answer?.token !== this.#answers.get(label)?.token) {
      return `the receipt differs from that of ${label}`;
    }
    const { executed } = step;
    const count = this.#executions().length;
    if (executed === undefined || executed === count) return undefined;
    return `tools were executed ${count} times, not ${executed}`;
  }

  async #act(step: Step): Promise<Answer | string | undefined> {
    const { peers, gateway, names, folder } = this.#setting;
    if (step.call !== undefined) return await this.#call(step.call);
    if (step.start !== undefined) return this.#start(step.start, step.as ?? '');
    if (step.finish !== undefined) return await this.#startedAs(step.finish).answer;
    if (step.disconnect !== undefined) {
      this.#startedAs(step.disconnect).caller.abort();
      return undefined;
    }
    if (step.rpc !== undefined) {
      const request = this.#withAnswers(step.request ?? {}) as NonNullable<Step['request']>;
      return await this.#rpcs.call(step.rpc, { ...step, request });
    }
    if (step.restart === true) return await this.#setting.restart().then(() => undefined);
    if (step.runs !== undefined) {
      await peers.world.executed(this.#nameOf(step.runs), step.runs.times ?? 1);
      return undefined;
    }
    if (step.answer !== undefined) {
      peers.world.release(this.#nameOf(step.answer), step.answer);
      return undefined;
    }
    if (step.cancelled !== undefined) {
      const { signal } = await peers.world.executed(this.#nameOf(step.cancelled), 1);
      await peers.world.until(() => signal.aborted || undefined, 'the cancellation of the tool');
      return undefined;
    }
    if (step.reported !== undefined) {
      const { token = '' } = this.#answers.get(step.reported) ?? {};
      const twice = () => (peers.reported.get(token) ?? 0) >= 2 || undefined;
      await peers.world.until(twice, 'two reports of the receipt');
      return undefined;
    }
    if (step.refusal_reported !== undefined) {
      const { reason, ...call } = step.refusal_reported;
      const { tenant, runId, callId } = this.#nameOf(call);
      const isExpected = (one: RefusedAttempt): boolean =>
        one.tenant === tenant &&
        one.runId === runId &&
        one.callId === callId &&
        one.reason === reason &&
        one.writSha256 !== '';
      const find = () => Array.from(peers.refusals.values()).find(isExpected);
      await peers.world.until(find, `the report of the refusal of ${callId}`);
      return undefined;
    }
    if (step.health !== undefined) {
      const { health: service } = step;
      return await answered(async () => ({ view: { serving: await isServing(gateway, service) } }));
    }
    if (step.reflection !== undefined) {
      const services = await listServices(gateway);
      return { view: Object.fromEntries(services.map((name) => [name, true])) };
    }
    if (step.args_hash_vectors !== undefined) {
      return await this.#vectors(resolve(folder, step.args_hash_vectors));
    }
    return `the step has no known action (case ${names.id})`;
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
    const caller = new AbortController();
    const answer = this.#send(this.#prepare(fields), caller.signal);
    // A `finish` step receives the error.
    answer.catch(() => undefined);
    this.#started.set(label, { answer, caller });
  }

  /** Replaces each `{from: <label>.<field>}` by that field of the response with this label. */
  #withAnswers(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item: unknown) => this.#withAnswers(item));
    if (typeof value !== 'object' || value === null) return value;
    if ('from' in value && typeof value.from === 'string') {
      const [label = '', field = ''] = value.from.split('.');
      const found = this.#answers.get(label)?.view[field];
      if (found === undefined) throw new Error(`no response has ${value.from}`);
      return found;
    }
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, this.#withAnswers(item)]),
    );
  }

  #startedAs(label: string): Started {
    const started = this.#started.get(label);
    if (started === undefined) throw new Error(`no call was started as ${label}`);
    return started;
  }

  #prepare(fields: CallFields): SentCall {
    const { peers, names } = this.#setting;
    const sent = toSentCall(peers, names, fields);
    const { call } = sent.request;
    const name = { tenant: call.tenant, runId: call.run_id, callId: call.call_id };
    if (fields.tool_does !== undefined) peers.world.script(name, fields.tool_does);
    this.#sent.add(sent);
    return sent;
  }

  async #send(sent: SentCall, signal?: AbortSignal): Promise<Answer> {
    const { gateway } = this.#setting;
    return await answered(async () => {
      const { headers, request, certificate } = sent;
      const message = fromJson(CallToolRequestSchema, request);
      const response = await gateway.client(certificate).callTool(message, { headers, signal });
      const view = toJson(CallToolResponseSchema, response, AS_CONTRACT) as JsonObject;
      const receipt = await receiptClaims(gateway, response.receipt);
      const fault = receiptFault(receipt, view, sent, this.#sent.writIdsOf(sent));
      if (fault !== undefined) throw new Error(fault);
      return { view: { ...view, receipt }, token: response.receipt };
    });
  }

  /** Sends the first call of each hash, then the repeats (TG-4). */
  async #vectors(file: string): Promise<string | undefined> {
    const calls = readVectorCalls(file);
    for (const repeats of [false, true]) {
      const made = calls
        .filter(({ isRepeat }) => isRepeat === repeats)
        .map(async ({ name, call, argsHash }) => {
          const stopReason = repeats ? 'loop_detected:signature_repeat' : '';
          const repetition = repeats ? { args_hash: argsHash } : { absent: true };
          const { view } = await this.#call(call);
          const differs = mismatch(view, { stop_reason: stopReason, repetition });
          return differs && `${name}: ${differs}`;
        });
      const fault = (await Promise.all(made)).find((what) => what !== undefined);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #nameOf({ call_id: callId, run }: { readonly call_id: string; readonly run?: string }) {
    const own = runOf(this.#setting.names, run === undefined ? {} : { run });
    return { tenant: own.tenant, runId: own.run_id, callId };
  }

  #executions() {
    return this.#setting.peers.world.executionsOf(this.#setting.names.id);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
