import { create } from '@bufbuild/protobuf';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import {
  type InvokeRequest,
  type InvokeResponse,
  InvokeResponseSchema,
} from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import { InternalError, InvalidRequestError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import type { ToolBehavior } from './table.ts';

/** One execution of a conformance tool. */
export interface Execution {
  readonly request: InvokeRequest;
  /** Aborted when the gateway cancels the execution. */
  readonly signal: AbortSignal;
}

/** Identifies a call of a verification. */
export interface CallName {
  readonly tenant: string;
  readonly runId: string;
  readonly callId: string;
}

interface Script {
  readonly behavior: ToolBehavior;
  readonly release: PromiseWithResolvers<ToolBehavior>;
}

/** Timeout of {@link ToolWorld.until}. */
const WAIT_TIMEOUT_MS = 10_000;

/** Runs the conformance tools as the cases define, and records every execution. */
export class ToolWorld {
  readonly #executions: Execution[] = [];
  readonly #scripts = new Map<string, Script>();
  readonly #watchers = new Set<() => void>();

  /** Sets the behavior of the tool for this call. */
  script(call: CallName, behavior: ToolBehavior): void {
    this.#scripts.set(nameOf(call), { behavior, release: Promise.withResolvers() });
  }

  /** Releases a tool that holds its response. */
  release(call: CallName, behavior: ToolBehavior): void {
    this.#scripts.get(nameOf(call))?.release.resolve(behavior);
  }

  /** Executions of the case. */
  executionsOf(caseId: string): readonly Execution[] {
    return this.#executions.filter(({ request }) => request.runId.endsWith(caseId));
  }

  /** Resolves with the `count`th execution of a call. Rejects after a timeout. */
  async executed(call: CallName, count: number): Promise<Execution> {
    const name = nameOf(call);
    const find = () =>
      this.#executions.filter(({ request }) => nameOf(request) === name)[count - 1];
    return await this.until(find, `execution ${count} of ${call.callId}`);
  }

  /** Waits until `find` returns a value; `find` is called at once and after every change. Rejects after ten seconds. */
  async until<T>(find: () => T | undefined, what: string): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const look = () => {
      const found = find();
      if (found !== undefined) resolve(found);
    };
    const late = () =>
      reject(new Error(`timed out after ${WAIT_TIMEOUT_MS} ms waiting for ${what}`));
    const timer = setTimeout(late, WAIT_TIMEOUT_MS);
    this.#watchers.add(look);
    look();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      this.#watchers.delete(look);
    }
  }

  /** Evaluates the conditions of {@link until} again. */
  changed(): void {
    for (const look of this.#watchers) look();
  }

  /** Handler of ToolProviderService.Invoke. */
  async invoke(request: InvokeRequest, { signal }: CallContext): Promise<InvokeResponse> {
    this.#executions.push({ request, signal });
    signal.addEventListener('abort', () => this.changed(), { once: true });
    this.changed();
    const script = this.#scripts.get(nameOf(request));
    const behavior = script?.behavior ?? {};
    if (behavior.hangs !== undefined) return await hang(behavior.hangs, signal);
    if (behavior.holds !== true || script === undefined) return answer(behavior);
    return answer(await Promise.race([script.release.promise, whenAborted(signal)]));
  }
}

function nameOf({ tenant, runId, callId }: CallName): string {
  return `${tenant}/${runId}/${callId}`;
}

function answer({ result, text, image, fails, errs, nothing }: ToolBehavior): InvokeResponse {
  if (fails !== undefined) return response({ case: 'failure', value: { message: fails } });
  if (errs === 'internal') throw new InternalError('INTERNAL', 'A secret of the tool.');
  if (errs === 'refused')
    throw new InvalidRequestError('INVALID_ARGUMENT', 'A secret of the tool.');
  if (nothing === true) return response({ case: undefined });
  if (text !== undefined) return given(ResultKind.TEXT, text);
  if (image !== undefined) return given(ResultKind.IMAGE, image, 'image/png');
  return given(ResultKind.JSON, result ?? '{"status":"ok"}');
}

function given(kind: ResultKind, content: string, mediaType = ''): InvokeResponse {
  return response({ case: 'result', value: { kind, content, mediaType } });
}

type Outcome = NonNullable<Parameters<typeof create<typeof InvokeResponseSchema>>[1]>['outcome'];

function response(outcome: NonNullable<Outcome>): InvokeResponse {
  return create(InvokeResponseSchema, { outcome });
}

/** Never resolves; with `until_cancelled` it rejects when the call is cancelled. */
function hang(mode: 'until_cancelled' | 'forever', signal: AbortSignal): Promise<never> {
  return mode === 'until_cancelled' ? whenAborted(signal) : new Promise(() => undefined);
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
