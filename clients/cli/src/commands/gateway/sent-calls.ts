import { sha256Hex } from '@writ/kernel';
import type { SentCall } from './sent-call.ts';
import type { Execution } from './tool-world.ts';

interface Sent {
  /** SHA-256 of the argument bytes of the first request for the call. */
  readonly digest: string;
  readonly writIds: Set<string>;
}

/** The calls that a case has sent; executions are checked against them. */
export class SentCalls {
  readonly #sent = new Map<string, Sent>();

  /** Adds a call before it is sent. */
  add(sent: SentCall): void {
    const name = nameOf(sent);
    const known = this.#sent.get(name) ?? {
      digest: sha256Hex(sent.request.arguments_json),
      writIds: new Set<string>(),
    };
    known.writIds.add(sent.writId);
    this.#sent.set(name, known);
  }

  /** Ids of the writs that were sent with the call. */
  writIdsOf(sent: SentCall): ReadonlySet<string> {
    return this.#sent.get(nameOf(sent))?.writIds ?? new Set();
  }

  /**
   * Checks that every execution received the signed argument bytes, a deadline, and the idempotency key of its call,
   * which no other call may have (TG-1, TG-5).
   * @returns the first problem
   */
  fault(executions: readonly Execution[]): string | undefined {
    const callOfKey = new Map<string, string>();
    const keysOfCall = new Map<string, Set<string>>();
    for (const { request } of executions) {
      const { tenant, tool, runId, callId, idempotencyKey, argumentsJson, deadline } = request;
      const call = `${tenant}/${runId}/${callId}`;
      // A tool does not receive the agent instance.
      const sent = Array.from(this.#sent).filter(([name]) => name.startsWith(`${call}/`));
      if (!sent.some(([, { digest }]) => digest === sha256Hex(argumentsJson))) {
        return `${tool} received argument bytes that were not signed`;
      }
      if (deadline === undefined) return `${tool} received no deadline`;
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

function nameOf({ request: { call } }: SentCall): string {
  return `${call.tenant}/${call.run_id}/${call.call_id}/${call.agent_instance}`;
}
