import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { join } from 'node:path';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  mintAgentCredentials,
  mintSlotGrant,
  openSigner,
  type ServiceName,
  type Signer,
} from '@writ/identity';
import { systemClock } from '@writ/kernel';

const HOUR_MS = 3_600_000;
const PAST = { ...systemClock, now: () => new Date(Date.now() - HOUR_MS) };

/** The identity of an agent in a token. */
export interface TokenAgent {
  readonly tenant: string;
  readonly runId: string;
  readonly instance: string;
}

/** Returns the token with the algorithm `none` and without its signature. */
export function unsigned(token: string): string {
  const [header = '', payload = ''] = token.split('.');
  const named = JSON.parse(Buffer.from(header, 'base64url').toString()) as object;
  return `${encoded({ ...named, alg: 'none' })}.${payload}.`;
}

/** Signs valid and invalid tokens of services and agents with the keys of a platform. */
export class Forge {
  readonly #keyDir: string;
  readonly #otherKeyDir: string;
  readonly #signers = new Map<string, Promise<Signer>>();

  constructor(dataDir: string) {
    this.#keyDir = join(dataDir, 'keys');
    this.#otherKeyDir = join(dataDir, 'other-keys');
  }

  async service(
    name: ServiceName,
    audience: ServiceName,
    {
      tenants = [],
      ...validity
    }: { tenants?: string[]; expired?: boolean; otherKey?: boolean } = {},
  ): Promise<string> {
    const signer = await this.#signer(name, validity);
    const claims = { name, replica: 'test', tenants };
    return (await signer.sign('service', { audience, claims, ttlMs: 60_000 })).token;
  }

  async agent(agent: TokenAgent, audience: ServiceName, expired = false): Promise<string> {
    const tokens = await mintAgentCredentials(
      await this.#signer('supervisor', { expired }),
      {
        tenant: agent.tenant,
        runId: agent.runId,
        sessionId: 'ses_test',
        agent: { name: 'refund-worker', instance: agent.instance },
        depth: 0,
        priority: Priority.NORMAL,
        models: [],
        tools: [],
      },
      60_000,
    );
    const byAudience: Partial<Record<ServiceName, string | undefined>> = {
      supervisor: tokens.supervisorToken,
      'spawn-budget': tokens.spawnBudgetToken,
      'execution-meter': tokens.executionMeterToken,
      'tool-gateway': tokens.toolGatewayToken,
    };
    return byAudience[audience] ?? '';
  }

  async grant({ tenant, runId, instance }: TokenAgent): Promise<string> {
    const priority = Priority.NORMAL;
    const signer = await this.#signer('spawn-budget', {});
    const claims = { tenant, runId, agentInstance: instance, priority, epoch: 1_000n };
    return (await mintSlotGrant(signer, claims)).token;
  }

  #signer(
    service: ServiceName,
    { expired = false, otherKey = false }: { expired?: boolean; otherKey?: boolean },
  ): Promise<Signer> {
    const keyDir = otherKey ? this.#otherKeyDir : this.#keyDir;
    const id = `${service} ${expired} ${otherKey}`;
    const known = this.#signers.get(id);
    if (known !== undefined) return known;
    const opened = openSigner({ service, keyDir, clock: expired ? PAST : systemClock });
    this.#signers.set(id, opened);
    return opened;
  }
}

/** An OpenID Connect issuer with its keys in a file. */
export class FileIssuer {
  readonly name = 'https://issuer.example';
  readonly audience = 'writ';
  readonly jwks: string;
  readonly #key: KeyObject;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    this.#key = privateKey;
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'EdDSA' };
    this.jwks = JSON.stringify({ keys: [jwk] });
  }

  /** A token of a person whose roles permit every public RPC; `changes` override its claims. */
  token(changes: Readonly<Record<string, unknown>> = {}): string {
    const now = Math.floor(Date.now() / 1_000);
    const payload = {
      iss: this.name,
      aud: this.audience,
      sub: 'ada',
      tenant: 'default',
      roles: ['caller', 'approver', 'admin', 'operator'],
      iat: now,
      exp: now + 60,
      ...changes,
    };
    const signed = `${encoded({ alg: 'EdDSA', kid: 'key-1' })}.${encoded(payload)}`;
    return `${signed}.${sign(null, Buffer.from(signed), this.#key).toString('base64url')}`;
  }
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
