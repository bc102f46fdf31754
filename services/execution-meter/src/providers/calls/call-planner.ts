import { PreconditionError } from '@writ/kernel';
import type { ModelEntry } from '../../domain/catalog/model.ts';
import type { CallPlan } from '../../domain/catalog/plan.ts';
import type { TokenPrices } from '../../domain/catalog/prices.ts';
import { type Variables, variableOf } from '../../domain/catalog/variables.ts';
import {
  type PromptSize,
  promptSize,
  promptTokensAtMost,
  promptTokensToHold,
  promptTokensUsually,
} from '../../domain/chat/prompt-size.ts';
import { countTokens } from '../token-counter.ts';
import type { CallAsk } from './call-ask.ts';

/** What a call needs at most: by an upper bound at first, and by counting only where that matters. */
export class CallPlanner {
  readonly model: ModelEntry;
  readonly #prices: TokenPrices | undefined;
  readonly #size: PromptSize;
  readonly #outputTokens: bigint;
  #textTokens: Promise<bigint> | undefined;
  #plan: CallPlan;

  constructor(ask: CallAsk, model: ModelEntry, prices: TokenPrices | undefined) {
    this.model = model;
    this.#prices = prices;
    this.#size = promptSize(ask.chat);
    const most = BigInt(model.maxOutputTokens);
    const wanted = ask.maxOutputTokens ?? most;
    this.#outputTokens = wanted < most ? wanted : most;
    this.#plan = this.#with(promptTokensAtMost(this.#size), false);
  }

  /** What to reserve for. */
  get plan(): CallPlan {
    return this.#plan;
  }

  /** Counts the prompt, since the upper bound did not fit. */
  async count(): Promise<void> {
    this.#plan = this.#with(promptTokensToHold(this.#size, await this.#counted()), true);
  }

  /** The prompt's tokens as an estimate of what was used. */
  async promptTokens(): Promise<bigint> {
    return promptTokensUsually(this.#size, await this.#counted());
  }

  #counted(): Promise<bigint> {
    this.#textTokens ??= countTokens(this.#size.texts);
    return this.#textTokens;
  }

  #with(promptTokens: bigint, counted: boolean): CallPlan {
    return {
      model: this.model,
      prices: this.#prices,
      promptTokens,
      counted,
      outputTokens: this.#outputTokens,
    };
  }
}

/**
 * The provider key of a model; undefined for providers that ask for none.
 * @throws PreconditionError PROVIDER_KEY_MISSING naming the variable to set
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

/** Milliseconds that one attempt may take; a deadline aborts the whole call instead (SUP-5). */
export function attemptTimeoutMs({ timeoutMs }: CallAsk, model: ModelEntry): number {
  return Math.min(timeoutMs ?? model.timeoutMs, model.timeoutMs);
}
