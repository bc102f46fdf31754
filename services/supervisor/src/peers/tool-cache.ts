import { type Clock, isWritError, UnavailableError } from '@writ/kernel';
import type { ReviewedTool } from '../domain/review/reviewed-tool.ts';

/** The tools of one registry version. */
export interface ToolListing {
  readonly version: string;
  readonly tools: ReadonlyMap<string, ReviewedTool>;
}

/** The response of the gateway to a list request. */
export interface RegistryAnswer {
  /** Undefined when the version is unchanged. */
  readonly listing: ToolListing | undefined;
  /** Whether the gateway publishes tool events on the bus itself (HK-1). */
  readonly emitsHookEvents: boolean;
}

/** Lists the registry, unless its version is the given one. */
export type ListRegistry = (knownVersion: string) => Promise<RegistryAnswer>;

/** How long a listing is used without revalidation, ms. */
const FRESH_MS = 2_000;
/** Minimum interval between requests for an unknown tool, ms: a worker may invent a new name each time. */
const UNKNOWN_TOOL_INTERVAL_MS = 250;

/**
 * Caches the latest tool listing of the gateway and revalidates it by registry version. While the gateway is
 * unreachable the cached definitions are used, because the gateway checks the digest of the definition again before it
 * executes the tool. Without any listing, tool calls cannot be reviewed (SYS-4).
 */
export class ToolCache {
  readonly #list: ListRegistry;
  readonly #clock: Clock;
  #listing: ToolListing | undefined;
  #emitsHookEvents = false;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #request: Promise<void> | undefined;
  #failure: UnavailableError | undefined;

  constructor(list: ListRegistry, clock: Clock) {
    this.#list = list;
    this.#clock = clock;
  }

  /**
   * Whether the gateway publishes tool events itself, according to its last response. False before the first response,
   * so that the supervisor publishes the events: a duplicate event is discarded, but an event that no service publishes
   * is lost (HK-1).
   */
  get emitsHookEvents(): boolean {
    return this.#emitsHookEvents;
  }

  /**
   * The current listing; refreshed when it is stale or does not contain `wanted`.
   * @throws UnavailableError TOOL_LIST_UNAVAILABLE when the gateway has never returned a listing
   */
  async current(wanted?: string): Promise<ToolListing> {
    if (this.#isOlderThan(FRESH_MS)) await this.#refresh(FRESH_MS);
    if (this.#listing === undefined) throw this.#failure ?? toolListUnavailable();
    const known = wanted === undefined || this.#listing.tools.has(wanted);
    if (!known && this.#isOlderThan(UNKNOWN_TOOL_INTERVAL_MS)) {
      await this.#refresh(UNKNOWN_TOOL_INTERVAL_MS);
    }
    return this.#listing;
  }

  #isOlderThan(ms: number): boolean {
    return this.#clock.monotonicMs() - this.#requestedAt >= ms || this.#listing === undefined;
  }

  /**
   * Requests the list, or waits for a request in flight. If that request was sent more than `ms` ago, its response may
   * be outdated, so another request is sent, unless that request failed.
   */
  async #refresh(ms: number): Promise<void> {
    if (this.#request !== undefined) {
      await this.#request;
      if (this.#failure !== undefined || !this.#isOlderThan(ms)) return;
    }
    this.#request ??= this.#send().finally(() => {
      this.#request = undefined;
    });
    await this.#request;
  }

  async #send(): Promise<void> {
    // The age of a listing counts from its request: the response may be older than a change of the registry.
    const requestedAt = this.#clock.monotonicMs();
    try {
      const answer = await this.#list(this.#listing?.version ?? '');
      this.#listing = answer.listing ?? this.#listing;
      this.#emitsHookEvents = answer.emitsHookEvents;
      this.#failure = undefined;
      this.#requestedAt = requestedAt;
    } catch (error) {
      this.#failure = toolListUnavailable(error);
      // Reviews use the cached listing for a while and do not each wait for a gateway that does not respond (SYS-4).
      this.#requestedAt = this.#clock.monotonicMs();
    }
  }
}

function toolListUnavailable(cause?: unknown): UnavailableError {
  const why = isWritError(cause) ? ` (${cause.reason})` : '';
  return new UnavailableError(
    'TOOL_LIST_UNAVAILABLE',
    `The tool gateway has not listed its tools yet, so tool calls cannot be reviewed${why}.`,
    { service: 'tool-gateway' },
    { cause },
  );
}
