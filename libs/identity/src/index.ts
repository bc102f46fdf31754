export { keyRoute } from './keys/key-route.ts';
export { createPrivate, replacePrivate } from './keys/private-file.ts';
export { formatPublicKeys, trustPublicKeys } from './keys/public-keys.ts';
export type { Addresses, TrustOptions } from './keys/remote-trust.ts';
export { createTrust } from './keys/remote-trust.ts';
export type { PublicKey, SignedToken, Signer, SignerOptions, SignOptions } from './keys/signer.ts';
export { openSigner } from './keys/signer.ts';
export type { Trust, TrustedKey } from './keys/trust.ts';
export { trustSigners } from './keys/trust.ts';
export { readTrustFile, TRUST_FILE, writeTrustFile } from './keys/trust-file.ts';
export type { WorkerPool } from './keys/worker-pools.ts';
export { poolOf } from './keys/worker-pools.ts';
export type { ApiKeyInfo, ApiKeys, ApiKeysOptions } from './people/api-keys.ts';
export { apiKeyId, newApiKey, openApiKeys } from './people/api-keys.ts';
export { DEVELOPER, devApiKey } from './people/dev-api-key.ts';
export { API_KEYS_FILE, DEV_API_KEY_FILE } from './people/key-files.ts';
export type { Oidc } from './people/oidc/oidc.ts';
export { createOidc } from './people/oidc/oidc.ts';
export type { OidcAlgorithm, OidcSettings } from './people/oidc/oidc-settings.ts';
export { OIDC_ALGORITHMS, OIDC_DEFAULTS } from './people/oidc/oidc-settings.ts';
export type { PublicGateOptions } from './people/public-gate.ts';
export { publicGate } from './people/public-gate.ts';
export { isRole, ROLES } from './people/roles.ts';
export type { TenantRate } from './people/tenant-rate.ts';
export { rateLimited, tenantRateLimit } from './people/tenant-rate.ts';
export type {
  CallerRow,
  OpenRow,
  PeopleRow,
  RpcName,
  ServicesRow,
} from './services/caller-table.ts';
export {
  assertRows,
  callerRow,
  callerTable,
  permitsRoles,
  permittedRpcs,
  rpcKey,
} from './services/caller-table.ts';
export type { InternalGateOptions } from './services/internal-gate.ts';
export { internalGate } from './services/internal-gate.ts';
export type { ServerName, ServiceName } from './services/names.ts';
export {
  AUDIT,
  CORE_SERVICES,
  type CoreService,
  EVERY_SERVICE,
  isServiceName,
  SERVICE_NAMES,
  TOOL_PROVIDER,
} from './services/names.ts';
export type { ServiceTls, ServiceTlsOptions } from './services/service-tls.ts';
export { openServiceTls } from './services/service-tls.ts';
export { isTrustDomain, readSpiffeId, spiffeId } from './services/spiffe.ts';
export type { AgentTokenOptions } from './tokens/agent-token.ts';
export {
  AGENT_TOKEN_TTL_MS,
  assertServesTenant,
  mintAgentCredentials,
  readAgentToken,
  servesTenant,
} from './tokens/agent-token.ts';
export { mintCheckpoint, parseCheckpoint, readCheckpoint } from './tokens/checkpoint.ts';
export { admitEpoch } from './tokens/epochs.ts';
export { eventMac, isEventMac } from './tokens/event-mac.ts';
export { contractPriority, weightOf } from './tokens/priority-weight.ts';
export { mintReceipt, readReceipt } from './tokens/receipt.ts';
export type { ServiceTokenOptions } from './tokens/service-tokens.ts';
export { serviceTokens } from './tokens/service-tokens.ts';
export type { UnverifiedGrant } from './tokens/slot-grant.ts';
export {
  mintSlotGrant,
  parseSlotGrant,
  requireSlotGrant,
  SLOT_GRANT_TTL_MS,
} from './tokens/slot-grant.ts';
export type { Claims, ClaimsInit, TokenKind } from './tokens/token-kinds.ts';
export { DEFAULT_CLOCK_LEEWAY_MS } from './tokens/token-kinds.ts';
export type { VerifiedToken, Verifier, VerifierOptions, VerifyOptions } from './tokens/verifier.ts';
export { createVerifier } from './tokens/verifier.ts';
export type { CheckWritOptions, OrderedCall } from './tokens/writ.ts';
export { checkWrit, mintWrit } from './tokens/writ.ts';
