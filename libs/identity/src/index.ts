export type { AgentTokenOptions } from './agent-token.ts';
export {
  AGENT_TOKEN_TTL_MS,
  assertServesTenant,
  mintAgentCredentials,
  readAgentToken,
} from './agent-token.ts';
export { isRole, ROLES } from './api-key-file.ts';
export type { ApiKeyInfo, ApiKeys, ApiKeysOptions } from './api-keys.ts';
export { newApiKey, openApiKeys } from './api-keys.ts';
export type { CallerRow, OpenRow, PeopleRow, RpcName, ServicesRow } from './caller-table.ts';
export { assertRows, callerRow, callerTable, rpcKey } from './caller-table.ts';
export { mintCheckpoint, readCheckpoint } from './checkpoint.ts';
export { API_KEYS_FILE, DEV_API_KEY_FILE, DEVELOPER, devApiKey } from './dev-api-key.ts';
export { admitEpoch } from './epochs.ts';
export { eventMac, isEventMac } from './event-mac.ts';
export type { InternalGateOptions } from './internal-gate.ts';
export { internalGate } from './internal-gate.ts';
export { keyRoute } from './key-route.ts';
export type { ServerName, ServiceName } from './names.ts';
export { AUDIT, EVERY_SERVICE, isServiceName, SERVICE_NAMES, TOOL_PROVIDER } from './names.ts';
export type { Oidc } from './oidc/oidc.ts';
export { createOidc } from './oidc/oidc.ts';
export type { OidcAlgorithm, OidcSettings } from './oidc/oidc-settings.ts';
export { OIDC_ALGORITHMS, OIDC_DEFAULTS } from './oidc/oidc-settings.ts';
export { contractPriority, weightOf } from './priority-weight.ts';
export { createPrivate, replacePrivate } from './private-file.ts';
export type { PublicGateOptions } from './public-gate.ts';
export { publicGate } from './public-gate.ts';
export { formatPublicKeys, trustPublicKeys } from './public-keys.ts';
export { mintReceipt, readReceipt } from './receipt.ts';
export type { Addresses, TrustOptions } from './remote-trust.ts';
export { createTrust } from './remote-trust.ts';
export type { ServiceTls, ServiceTlsOptions } from './service-tls.ts';
export { openServiceTls } from './service-tls.ts';
export type { ServiceTokenOptions } from './service-tokens.ts';
export { serviceTokens } from './service-tokens.ts';
export type { PublicKey, SignedToken, Signer, SignerOptions, SignOptions } from './signer.ts';
export { openSigner } from './signer.ts';
export type { UnverifiedGrant } from './slot-grant.ts';
export {
  mintSlotGrant,
  parseSlotGrant,
  requireSlotGrant,
  SLOT_GRANT_TTL_MS,
} from './slot-grant.ts';
export { isTrustDomain, readSpiffeId, spiffeId } from './spiffe.ts';
export type { TenantRate } from './tenant-rate.ts';
export { rateLimited, tenantRateLimit } from './tenant-rate.ts';
export type { Claims, ClaimsInit, TokenKind } from './token-kinds.ts';
export type { Trust, TrustedKey } from './trust.ts';
export { trustSigners } from './trust.ts';
export { readTrustFile, TRUST_FILE, writeTrustFile } from './trust-file.ts';
export type { VerifiedToken, Verifier, VerifierOptions, VerifyOptions } from './verifier.ts';
export { createVerifier } from './verifier.ts';
export type { CheckWritOptions, OrderedCall } from './writ.ts';
export { checkWrit, mintWrit } from './writ.ts';
