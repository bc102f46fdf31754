import { sha256Hex } from '@writ/kernel';
import type { SentCall } from './sent-call.ts';
import type { Execution } from './tool-world.ts';

interface Sent {
  /** Of the arguments that came first. */
  readonly digest: string;
  readonly writIds: Set<string>;
}

/** Every call that a case has sent, to hold the executions against. */
export class SentCalls {
  readonly #sent = new Map<string, Sent>();

  /** Remembers a call that is about to be sent. */
  add(sent: SentCall): void {
    const name = nameOf(sent);
    const known = this.#sent.get(name) ?? {
      digest: sha256Hex(sent.request.arguments_json),
      writIds: new Set<string>(),
    };
    known.writIds.add(sent.writId);
    this.#sent.set(name, known);
  }

  /** Ids of every writ that was shown for the call. */
  writIdsOf(sent: SentCall): ReadonlySet<string> {
    return this.#sent.get(nameOf(sent))?.writIds ?? new Set();
  }

  /**
   * What every execution must be: of the bytes that were signed, under the one key of its call (TG-1, TG-5).
   * @returns what one of them was instead
   */
  fault(executions: readonly Execution[]): string | undefined {
    const callOfKey = new Map<string, string>();
    const keysOfCall = new Map<string, Set<string>>();
    for (const { request } of executions) {
      const { tenant, tool, runId, callId, idempotencyKey, argumentsJson, deadline } = request;
      const call = `${tenant}/${runId}/${callId}`;
      // A tool is not told which instance of an agent calls.
      const sent = Array.from(this.#sent).filter(([name]) => name.startsWith(`${call}/`));
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

function nameOf({ request: { call } }: SentCall): string {
  return `${call.tenant}/${call.run_id}/${call.call_id}/${call.agent_instance}`;
}
