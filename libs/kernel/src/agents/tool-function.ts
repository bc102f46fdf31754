import type { JsonObject } from '../json/json-value.ts';
import type { Clock } from '../time/clock.ts';

/** The context of a tool call (TG-6). */
export interface ToolCall {
  /**
   * Key that is identical for every repeat of an approved call, so that the tool can apply the effect of the call only
   * once (TG-5).
   */
  readonly idempotencyKey: string;
  readonly tenant: string;
  readonly runId: string;
  /** Name of the agent's manifest. */
  readonly agentName: string;
  readonly callId: string;
  /** Aborts at the timeout of the tool and when the call is cancelled: stop and throw (SUP-6). */
  readonly signal: AbortSignal;
}

/**
 * A tool written in TypeScript: receives the validated arguments and returns a JSON object. A thrown error
 * fails the call; throw a {@link ToolFailure} to show its message to the model.
 */
export type ToolFunction = (args: JsonObject, call: ToolCall) => Promise<JsonObject>;

/** The context that the gateway passes to a module of tools. */
export interface ToolContext {
  /** A folder for files of the tools. */
  readonly dataDir: string;
  /** Settings by name, such as endpoints and credentials; not visible to models and workers. */
  readonly variables: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

/** Tools by name. If the object is disposable, the gateway disposes of it at shutdown. */
export type Tools = Readonly<Record<string, ToolFunction>> & Partial<AsyncDisposable>;

/**
 * The exports of a module listed in tools.yaml (TG-6).
 *
 * @example
 * ```ts
 * import { type ToolContext, ToolFailure, type Tools } from '@writ/sdk';
 *
 * export async function createTools({ variables }: ToolContext): Promise<Tools> {
 *   return {
 *     get_order: async ({ order_id }, { signal, idempotencyKey }) => {
 *       const response = await fetch(`${variables.ORDERS_URL}/${String(order_id)}`, {
 *         signal,
 *         headers: { 'idempotency-key': idempotencyKey },
 *       });
 *       if (!response.ok) throw new ToolFailure('The order does not exist.');
 *       return { order: await response.text() };
 *     },
 *   };
 * }
 * ```
 */
export interface ToolModule {
  createTools(context: ToolContext): Promise<Tools>;
}

/**
 * An error that a tool throws to show its message to the model. The messages of other errors are not shown, because
 * they may contain secrets.
 *
 * @example
 * ```ts
 * import { ToolFailure } from '@writ/sdk';
 *
 * export function parcelOf(id: number): { readonly parcel: number } {
 *   if (id < 1) throw new ToolFailure(`Parcel ${id} does not exist.`);
 *   return { parcel: id };
 * }
 * ```
 */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}
