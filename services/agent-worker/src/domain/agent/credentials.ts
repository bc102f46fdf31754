/** What lets a worker act for one agent: a token per service. Secret; never logged. */
export interface AgentCredentials {
  readonly supervisor: string;
  readonly spawnBudget: string;
  readonly executionMeter: string;
  readonly toolGateway: string;
  /** When the tokens stop working, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** The services that an agent token can be for. */
export type TokenAudience = Exclude<keyof AgentCredentials, 'expiresAt'>;
