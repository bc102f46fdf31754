/**
 * The tokens with which agent-proxy calls the other services for an external agent, one per service. Secret; never
 * logged.
 */
export interface AgentCredentials {
  readonly supervisor: string;
  readonly spawnBudget: string;
  readonly executionMeter: string;
  readonly toolGateway: string;
  /** Expiry, in milliseconds since 1970. */
  readonly expiresAt: number;
}

/** How long before their expiry tokens are renewed. */
const MARGIN_MS = 30_000;

/** Whether tokens are not about to expire. */
export function areFresh({ expiresAt }: AgentCredentials, now: number): boolean {
  return expiresAt - now >= MARGIN_MS;
}
