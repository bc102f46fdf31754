import type { AgentCredentials, TokenAudience } from '../domain/agent/credentials.ts';

/** How long before their end tokens are renewed. */
const MARGIN_MS = 30_000;

/** Whether tokens will still work for a while. */
export function areFresh({ expiresAt }: AgentCredentials, now: number): boolean {
  return expiresAt - now >= MARGIN_MS;
}

/** How an agent's tokens are had again. */
export interface CredentialsParts {
  readonly initial: AgentCredentials;
  readonly now: () => number;
  /** Asks the supervisor, under the token given, which may have expired. */
  readonly refresh: (supervisorToken: string) => Promise<AgentCredentials>;
  /** Keeps them for the next lease. */
  readonly save: (credentials: AgentCredentials) => Promise<void>;
}

/** The tokens of one agent, renewed before they end and when a peer refuses them. */
export class Credentials {
  readonly #parts: CredentialsParts;
  #latest: AgentCredentials;
  #renewal: Promise<void> | undefined;

  constructor(parts: CredentialsParts) {
    this.#parts = parts;
    this.#latest = parts.initial;
  }

  /** The token for a service, renewed first when it is about to end. */
  async token(audience: TokenAudience): Promise<string> {
    if (!this.#areFresh) await this.renew();
    return this.#latest[audience];
  }

  /** The token for a service; undefined when it is about to end. */
  freshToken(audience: TokenAudience): string | undefined {
    return this.#areFresh ? this.#latest[audience] : undefined;
  }

  /** Gets fresh tokens; callers at the same time share one renewal. */
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
