/** The tokens with which a worker acts for one agent, one per service. Secret; never logged. */
export interface AgentCredentials {
  readonly supervisor: string;
  readonly spawnBudget: string;
  readonly executionMeter: string;
  readonly toolGateway: string;
  /** Expiry of the tokens, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** The services that accept agent tokens. */
export type TokenAudience = Exclude<keyof AgentCredentials, 'expiresAt'>;
