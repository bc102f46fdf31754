import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { ManualClock, sha256Hex } from '@writ/kernel';
import { importJWK, type JWK } from 'jose';
import { afterAll, onTestFinished } from 'vitest';
import { openSigner, type Signer } from '../src/keys/signer.ts';
import { trustSigners } from '../src/keys/trust.ts';
import { AUDIT, EVERY_SERVICE, SERVICE_NAMES, type ServiceName } from '../src/services/names.ts';
import type { ClaimsInit, TokenKind } from '../src/tokens/token-kinds.ts';
import { createVerifier, type Verifier } from '../src/tokens/verifier.ts';

/** Creates a temporary folder, removed after the test. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'writ-identity-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Creates a temporary folder, removed after the suite. */
export function suiteDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'writ-identity-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export interface World {
  readonly clock: ManualClock;
  readonly keyDir: string;
  readonly signers: Readonly<Record<ServiceName, Signer>>;
  readonly verifier: Verifier;
}

/** Creates the signers of all services, and a verifier that trusts them. */
export async function createWorld(keyDir: string = tempDir()): Promise<World> {
  const clock = new ManualClock();
  const open = (service: ServiceName) => openSigner({ service, keyDir, clock });
  const signers = {
    supervisor: await open('supervisor'),
    'spawn-budget': await open('spawn-budget'),
    'execution-meter': await open('execution-meter'),
    'tool-gateway': await open('tool-gateway'),
    'agent-worker': await open('agent-worker'),
    'agent-proxy': await open('agent-proxy'),
  };
  const trust = trustSigners(...Object.values(signers));
  return { clock, keyDir, signers, verifier: createVerifier({ trust, clock }) };
}

export const AGENT = { name: 'clerk', instance: 'ag_1' };
export const ARGUMENTS = '{"user_id":42}';

/** Valid claims of every kind of token. */
export const CLAIMS: { readonly [K in TokenKind]: ClaimsInit<K> } = {
  service: { name: 'supervisor', replica: 'r1', tenants: ['acme'] },
  agent: {
    tenant: 'acme',
    runId: 'run_1',
    sessionId: 'ses_1',
    agent: AGENT,
    parent: { name: 'boss', instance: 'ag_0' },
    depth: 1,
    priority: Priority.HIGH,
    models: ['default'],
    tools: ['get_refund_context'],
  },
  slot_grant: {
    tenant: 'acme',
    runId: 'run_1',
    agentInstance: AGENT.instance,
    priority: Priority.HIGH,
    epoch: 3n,
  },
  writ: {
    tenant: 'acme',
    runId: 'run_1',
    agent: AGENT,
    callId: 'call_1',
    tool: 'issue_refund',
    definitionDigest: sha256Hex('definition'),
    argsSha256: sha256Hex(ARGUMENTS),
    decisionId: 'dec_1',
    policyVersion: 'p1',
    executedFrom: 'original',
    maxToolCalls: 5,
    allowedTools: ['issue_refund'],
    resultFields: ['refund.amount_usd'],
    sessionId: 'ses_1',
  },
  receipt: {
    tenant: 'acme',
    runId: 'run_1',
    agent: AGENT,
    callId: 'call_1',
    tool: 'issue_refund',
    writId: 'writ_1',
    status: CallStatus.OK,
    resultSha256: sha256Hex('{}'),
    resultFields: { refund: { amount_usd: 12.5 } },
    argsSha256: sha256Hex(ARGUMENTS),
    definitionDigest: sha256Hex('definition'),
    registryVersion: 'v1',
    startTime: { seconds: 1n, nanos: 0 },
    endTime: { seconds: 2n, nanos: 0 },
    revision: 1,
    step: 2,
  },
  checkpoint: { tenant: 'acme', count: 12n, headHash: sha256Hex('head') },
  run_token: { tenant: 'acme', runId: 'run_1', agent: AGENT },
};

/** Issuer and audience of each kind of token in these tests. */
export const ISSUED: {
  readonly [K in TokenKind]: { readonly issuer: ServiceName; readonly audience: string };
} = {
  service: { issuer: 'supervisor', audience: 'execution-meter' },
  agent: { issuer: 'supervisor', audience: 'execution-meter' },
  slot_grant: { issuer: 'spawn-budget', audience: EVERY_SERVICE },
  writ: { issuer: 'supervisor', audience: 'tool-gateway' },
  receipt: { issuer: 'tool-gateway', audience: 'supervisor' },
  checkpoint: { issuer: 'supervisor', audience: AUDIT },
  run_token: { issuer: 'supervisor', audience: 'agent-proxy' },
};

export const KINDS: readonly TokenKind[] = [
  'service',
  'agent',
  'slot_grant',
  'writ',
  'receipt',
  'checkpoint',
  'run_token',
];

/** A valid token of `kind` that expires in a minute. */
export async function tokenOf<K extends TokenKind>(world: World, kind: K): Promise<string> {
  const { issuer, audience } = ISSUED[kind];
  const signed = await world.signers[issuer].sign(kind, {
    audience,
    claims: CLAIMS[kind],
    ttlMs: 60_000,
  });
  return signed.token;
}

/** The private key of a signer, to sign invalid tokens. */
export async function stolenKey(keyDir: string, service: ServiceName) {
  const file = readFileSync(join(keyDir, `${service}.jwks.json`), 'utf8');
  const [jwk]: JWK[] = JSON.parse(file).keys;
  if (jwk === undefined) throw new Error('The key file is empty.');
  return { key: await importJWK(jwk, 'EdDSA'), kid: jwk.kid ?? '' };
}

/** Returns all services except `service`. */
export const othersThan = (service: ServiceName) =>
  SERVICE_NAMES.filter((name) => name !== service);
