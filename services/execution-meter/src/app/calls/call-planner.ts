import { InvalidRequestError, PreconditionError, sha256Hex } from '@writ/kernel';
import type { CallPlan } from '../../domain/calls/call-plan.ts';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { TokenPrices } from '../../domain/catalog/prices.ts';
import { type Variables, variableOf } from '../../domain/catalog/variables.ts';
import type { CacheWrites } from '../../domain/chat/chat.ts';
import {
  type PromptSize,
  promptSize,
  promptTokensAtMost,
  promptTokensPossible,
  promptTokensToHold,
  promptTokensUsually,
} from '../../domain/chat/prompt-size.ts';
import { DIALECTS } from '../../domain/dialects/index.ts';
import { countTokens } from '../../providers/token-counter.ts';
import type { CallRequest } from './call-request.ts';

/**
 * Plans the reservation of an attempt: first from an upper bound of the tokens of the prompt text, and from a token
 * count only when this upper bound does not fit the budget.
 */
export class CallPlanner {
  readonly model: ModelEntry;
  readonly #prices: TokenPrices | undefined;
  readonly #size: PromptSize;
  readonly #outputTokens: bigint;
  readonly #cacheWrites: CacheWrites;
  #textTokens: Promise<bigint> | undefined;
  #plan: CallPlan;

  constructor(request: CallRequest, model: ModelEntry, prices: TokenPrices | undefined) {
    this.model = model;
    this.#prices = prices;
    this.#size = promptSize(request.chat);
    this.#cacheWrites = request.chat.cacheWrites ?? 'none';
    const limit = BigInt(model.maxOutputTokens);
    const requested = request.maxOutputTokens ?? limit;
    this.#outputTokens = requested < limit ? requested : limit;
    this.#plan = this.#planFor(promptTokensAtMost(this.#size), false);
  }

  /** The current plan. */
  get plan(): CallPlan {
    return this.#plan;
  }

  /** Maximum number of prompt tokens that the provider can have used. */
  get promptTokensPossible(): bigint {
    return promptTokensPossible(this.#size);
  }

  /** Replaces the plan with one from a token count, after the first plan did not fit the budget. */
  async count(): Promise<void> {
    this.#plan = this.#planFor(promptTokensToHold(this.#size, await this.#counted()), true);
  }

  /** Returns the estimated prompt tokens for settlement. */
  async estimatedPromptTokens(): Promise<bigint> {
    return promptTokensUsually(this.#size, await this.#counted());
  }

  #counted(): Promise<bigint> {
    this.#textTokens ??= countTokens(this.#size.texts);
    return this.#textTokens;
  }

  #planFor(promptTokens: bigint, counted: boolean): CallPlan {
    return {
      model: this.model,
      prices: this.#prices,
      cacheWrites: this.#cacheWrites,
      promptTokens,
      counted,
      outputTokens: this.#outputTokens,
    };
  }
}

/**
 * Returns an id of the provider account that a model uses. Ids of answers are valid only at the account that issued
 * them.
 */
export function providerIdOf({ baseUrl, keyVariable }: ModelEntry): string {
  return sha256Hex(`${baseUrl} ${keyVariable ?? ''}`).slice(0, 16);
}

/**
 * Returns the provider key of a model; undefined for providers without authentication.
 * @throws PreconditionError PROVIDER_KEY_MISSING with the variable to set
 */
export function providerKey(
  { alias, keyVariable }: ModelEntry,
  variables: Variables,
): string | undefined {
  if (keyVariable === undefined) return undefined;
  const key = variableOf(variables, keyVariable);
  if (key !== undefined) return key;
  throw new PreconditionError(
    'PROVIDER_KEY_MISSING',
    `Model ${alias} requires a provider key. Set ${keyVariable} and restart execution-meter.`,
    { model: alias, variable: keyVariable },
  );
}

/**
 * Rejects a request in a dialect that the provider of the model does not support.
 * @throws InvalidRequestError DIALECT_NOT_SUPPORTED
 */
export function requireDialect(
  { alias, api }: ModelEntry,
  { chat }: Pick<CallRequest, 'chat'>,
): void {
  const name = chat.native?.dialect ?? 'chat_completions';
  if (DIALECTS[name].api === api) return;
  const served = Object.values(DIALECTS).flatMap((other) =>
    other.api === api ? `/v1${other.path}` : [],
  );
  throw new InvalidRequestError(
    'DIALECT_NOT_SUPPORTED',
    `Model ${alias} does not serve /v1${DIALECTS[name].path}; its provider serves ${served.join(' and ')}.`,
    { field: 'model', model: alias },
  );
}

/**
 * Returns the time limit of one attempt in milliseconds. Does not consider the deadline of the tab, which aborts the
 * whole call (SUP-5).
 */
export function attemptTimeoutMs({ timeoutMs }: CallRequest, model: ModelEntry): number {
  return Math.min(timeoutMs ?? model.timeoutMs, model.timeoutMs);
}
