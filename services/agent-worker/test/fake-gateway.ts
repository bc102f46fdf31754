import type { MessageInitShape } from '@bufbuild/protobuf';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import {
  type CallToolRequest,
  type CallToolResponseSchema,
  ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { type JsonObject, PermissionDeniedError } from '@writ/kernel';
import { partialRoute, type Route } from '@writ/rpc';
import { agentKey, lineOf } from './delivery.ts';
import type { FaultSwitches } from './fault-switches.ts';
import { REFUND_TOOLS, runTool } from './refund-rules.ts';

type Answer = MessageInitShape<typeof CallToolResponseSchema>;

/** Executes the refund desk's tools idempotently, as the contract requires. */
export class FakeGateway {
  /** `call_id tool` of executed calls; repeats are not listed. */
  readonly executed: string[] = [];
  readonly requests: CallToolRequest[] = [];
  /** Remaining time until the deadline of each request, in milliseconds. */
  readonly remainingMs: number[] = [];
  /** Expired writs. */
  readonly expired = new Set<string>();
  /** Overrides the outcome of calls. */
  answer: ((tool: string, args: JsonObject) => Answer | undefined) | undefined;
  /** Registry version of each ListTools response, or `unchanged`. */
  readonly lists: string[] = [];
  registryVersion = 'v1';
  /** The tools of the registry. */
  tools: typeof REFUND_TOOLS = REFUND_TOOLS;
  /** Epochs of workers that have taken over an agent. */
  readonly admitted: (bigint | undefined)[] = [];
  /** Error returned to workers that register the epoch of a takeover; undefined accepts the epoch. */
  refuseAdmission: Error | undefined;
  readonly #faults: FaultSwitches;
  readonly #calls = new Map<string, { readonly request: string; readonly answer: Answer }>();

  constructor(faults: FaultSwitches) {
    this.#faults = faults;
  }

  routes(): Route[] {
    return [
      partialRoute(ToolGatewayService, {
        listTools: async ({ names, knownVersion, admitEpoch }, { caller }) => {
          const { registryVersion } = this;
          if (admitEpoch) {
            if (this.refuseAdmission !== undefined) throw this.refuseAdmission;
            this.admitted.push(caller.epoch);
            return { registryVersion };
          }
          const unchanged = knownVersion === registryVersion;
          this.lists.push(unchanged ? 'unchanged' : registryVersion);
          if (unchanged) return { registryVersion, unchanged };
          return {
            registryVersion,
            tools: this.tools.filter(({ name }) => names.includes(name)),
          };
        },
        callTool: async (request, { remainingMs }) => {
          const { callId = '', agentInstance = '' } = request.call ?? {};
          this.requests.push(request);
          this.remainingMs.push(remainingMs);
          const line = lineOf(agentInstance, callId);
          await this.#faults.pass(`before call_tool ${line}`);
          const answer = this.#execute(request, callId, line);
          await this.#faults.pass(`after call_tool ${line}`);
          return answer;
        },
      }),
    ];
  }

  /**
   * Resolves the indeterminate outcome of a call, as a human would; a repeated call returns the resolved outcome
   * (TG-5).
   */
  resolve(runId: string, callId: string, answer: Answer): void {
    const known = this.#calls.get(`${runId}/${callId}`);
    if (known === undefined) throw new Error(`There was no call ${callId}.`);
    this.#calls.set(`${runId}/${callId}`, { ...known, answer });
  }

  #execute(request: CallToolRequest, callId: string, line: string): Answer {
    const { tool, argumentsJson, writ } = request;
    const { runId = '', agentInstance = '' } = request.call ?? {};
    const key = `${agentKey(runId, agentInstance)}/${callId}`;
    const text = `${tool} ${argumentsJson}`;
    const known = this.#calls.get(key);
    if (known !== undefined) {
      if (known.request !== text) throw mismatch();
      return { ...known.answer, replayed: true };
    }
    if (this.expired.has(writ)) {
      throw new PermissionDeniedError('WRIT_EXPIRED', 'The writ has expired.');
    }
    if (!writ.startsWith(`writ-${callId}-`)) {
      throw mismatch();
    }
    this.executed.push(`${line} ${tool}`);
    const args = JSON.parse(argumentsJson) as JsonObject;
    const answer: Answer = this.answer?.(tool, args) ?? {
      status: CallStatus.OK,
      result: { kind: ResultKind.JSON, content: JSON.stringify(runTool(tool, args)) },
      receipt: `receipt-${callId}`,
    };
    this.#calls.set(key, { request: text, answer });
    return answer;
  }
}

function mismatch(): PermissionDeniedError {
  return new PermissionDeniedError('WRIT_MISMATCH', 'The writ is for another call.');
}
