import { type Clock, isWritError, UnavailableError } from '@writ/kernel';
import type { ReviewedTool } from '../domain/review/reviewed-tool.ts';

/** A registry as the gateway listed it. */
export interface ToolListing {
  readonly version: string;
  readonly tools: ReadonlyMap<string, ReviewedTool>;
}

/** What a gateway answered when it was asked for its registry. */
export interface RegistryAnswer {
  /** Undefined when it is still the version that the caller has. */
  readonly listing: ToolListing | undefined;
  /** Whether the gateway tells of tool calls on the bus itself (HK-1). */
  readonly emitsHookEvents: boolean;
}

/** Lists the registry, unless it is still the version that the caller has. */
export type ListRegistry = (knownVersion: string) => Promise<RegistryAnswer>;

/** How long a listing is used without asking whether it is still current. */
const FRESH_MS = 2_000;
/** Least time between two looks for a tool that nobody knows: a worker may invent one each time. */
const LOOK_AGAIN_MS = 250;

/**
 * The gateway's definitions, kept by registry version. A gateway that is away is no reason to refuse
 * what it would know: it checks the definition's digest itself when it is asked to execute. Without
 * any listing nothing can be reviewed (SYS-4).
 */
export class ToolCache {
  readonly #list: ListRegistry;
  readonly #clock: Clock;
  #listing: ToolListing | undefined;
  #emitsHookEvents = false;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  #failure: UnavailableError | undefined;

  constructor(list: ListRegistry, clock: Clock) {
    this.#list = list;
    this.#clock = clock;
  }

  /**
   * Whether the gateway, by its last answer, tells of tool calls on the bus itself. False before it
   * ever answered: an event that both tell is one, and one that nobody tells is lost (HK-1).
   */
  get emitsHookEvents(): boolean {
    return this.#emitsHookEvents;
  }

  /**
   * The registry, asked for again when what is kept is not fresh, or has no tool `wanted`.
   * @throws UnavailableError TOOL_LIST_UNAVAILABLE when no listing could ever be had
   */
  async current(wanted?: string): Promise<ToolListing> {
    if (this.#isOlderThan(FRESH_MS)) await this.#refresh();
    if (this.#listing === undefined) throw this.#failure ?? unknownTools();
    const known = wanted === undefined || this.#listing.tools.has(wanted);
    if (!known && this.#isOlderThan(LOOK_AGAIN_MS)) await this.#refresh();
    return this.#listing;
  }

  #isOlderThan(ms: number): boolean {
    const age = this.#clock.now().getTime() - this.#askedAt;
    // A clock that stepped back must not keep an old listing alive.
    return age < 0 || age >= ms || this.#listing === undefined;
  }

  async #refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  async #ask(): Promise<void> {
    try {
      const answer = await this.#list(this.#listing?.version ?? '');
      this.#listing = answer.listing ?? this.#listing;
      this.#emitsHookEvents = answer.emitsHookEvents;
      this.#failure = undefined;
    } catch (error) {
      this.#failure = unknownTools(error);
    }
    this.#askedAt = this.#clock.now().getTime();
  }
}

function unknownTools(cause?: unknown): UnavailableError {
  const why = isWritError(cause) ? ` (${cause.reason})` : '';
  return new UnavailableError(
    'TOOL_LIST_UNAVAILABLE',
    `The tool gateway has not said which tools there are, so no tool call can be reviewed${why}.`,
    { service: 'tool-gateway' },
    { cause },
  );
}
