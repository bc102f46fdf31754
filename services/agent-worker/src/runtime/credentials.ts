import type { AgentCredentials, TokenAudience } from '../domain/agent/credentials.ts';

/** Time before the expiry of tokens at which they are renewed, in milliseconds. */
const MARGIN_MS = 30_000;

/** Whether tokens are valid for at least {@link MARGIN_MS}. */
export function areFresh({ expiresAt }: AgentCredentials, now: number): boolean {
  return expiresAt - now >= MARGIN_MS;
}

/** Dependencies of {@link Credentials}. */
export interface CredentialsParts {
  readonly initial: AgentCredentials;
  readonly now: () => number;
  /** Requests new tokens with the given token, which may have expired. */
  readonly refresh: (supervisorToken: string) => Promise<AgentCredentials>;
  /** Stores the tokens for later leases. */
  readonly save: (credentials: AgentCredentials) => Promise<void>;
}

/** The tokens of one agent, renewed before they expire and when a peer rejects them. */
export class Credentials {
  readonly #parts: CredentialsParts;
  #latest: AgentCredentials;
  #renewal: Promise<void> | undefined;

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
    this.#latest = parts.initial;
  }

  /** Returns the token for a service, renewed if it is about to expire. */
  async token(audience: TokenAudience): Promise<string> {
    if (!this.#areFresh) await this.renew();
    return this.#latest[audience];
  }

  /** Returns the token for a service, or undefined when it is about to expire. */
  freshToken(audience: TokenAudience): string | undefined {
    return this.#areFresh ? this.#latest[audience] : undefined;
  }

  /** Renews the tokens; concurrent callers share one renewal. */
  renew(): Promise<void> {
    this.#renewal ??= this.#renew().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  get #areFresh(): boolean {
    return areFresh(this.#latest, this.#parts.now());
  }

  async #renew(): Promise<void> {
    const fresh = await this.#parts.refresh(this.#latest.supervisor);
    await this.#parts.save(fresh);
    this.#latest = fresh;
  }
}
