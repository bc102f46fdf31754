import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DescMethod } from '@bufbuild/protobuf';
import { API_KEYS_FILE, openApiKeys, ROLES } from '@writ/identity';
import { newId } from '@writ/kernel';
import type { Role } from '@writ/rpc';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { vi } from 'vitest';
import { FileIssuer, Forge, type TokenAgent } from './identities.ts';
import { requestFor } from './request-for.ts';

const GOAL = 'Refund Anna quietly.';

/** The ids of a run of the tenant `default`, and of its agent, its approval and a halt. */
interface Resources {
  readonly victim: TokenAgent;
  readonly session: string;
  /** Ids by the name of the request field that contains them. */
  readonly ids: Readonly<Record<string, string>>;
}

/**
 * A platform with a run that waits for an approval, with a lifted halt, and with the credentials that the tests
 * present: API keys by role and of another tenant, tokens of an OIDC issuer, and forged tokens of services and agents.
 */
export class BoundaryPlatform {
  readonly test: TestPlatform;
  readonly forge: Forge;
  readonly issuer: FileIssuer;
  /** API keys: by role, of another tenant (`other`), and revoked (`revoked`). */
  readonly keys: Readonly<Record<string, string>>;
  readonly #resources: Resources;

  private constructor(
    test: TestPlatform,
    issuer: FileIssuer,
    keys: Readonly<Record<string, string>>,
    resources: Resources,
  ) {
    this.test = test;
    this.forge = new Forge(test.dataDir);
    this.issuer = issuer;
    this.keys = keys;
    this.#resources = resources;
  }

  static async start(): Promise<BoundaryPlatform> {
    const dataDir = mkdtempSync(join(tmpdir(), 'writ-boundaries-'));
    const issuer = new FileIssuer();
    const jwks = join(dataDir, 'issuer.json');
    writeFileSync(jwks, issuer.jwks);
    const keys = await createKeys(join(dataDir, API_KEYS_FILE));
    const test = await startTestPlatform({
      dataDir,
      env: {
        WRIT_OIDC_ISSUER: issuer.name,
        WRIT_OIDC_AUDIENCE: issuer.audience,
        WRIT_OIDC_JWKS_FILE: jwks,
      },
    });
    return new BoundaryPlatform(test, issuer, keys, await createResources(test));
  }

  /** The agent of the run. */
  get victim(): TokenAgent {
    return this.#resources.victim;
  }

  /** `host:port` of the public endpoint. */
  get edge(): string {
    return new URL(this.test.platform.edgeUrl).host;
  }

  /** A valid request that names the resources. */
  request(method: DescMethod): Uint8Array {
    const { ids } = this.#resources;
    // Omits run_id in SetCaps, because run_id is invalid for the level TENANT_DAY of this request.
    const { run_id, ...others } = ids;
    return requestFor(method.input, {
      ...(method.name === 'SetCaps' ? others : ids),
      request_id: newId('req'),
      agent: 'refund-worker',
      goal: 'Something else.',
      reason: 'Because.',
      name: 'poke',
      priority: 'PRIORITY_HIGH',
      level: 'BUDGET_LEVEL_TENANT_DAY',
    });
  }

  /** Returns the ids and texts of the resources that a response contains. */
  leaks(bytes: Buffer): string[] {
    const text = bytes.toString('latin1');
    const { session, ids } = this.#resources;
    const { run_id, approval_id, halt_id, agent_instance } = ids;
    return [GOAL, session, run_id, approval_id, halt_id, agent_instance].filter(
      (thing): thing is string => thing !== undefined && text.includes(thing),
    );
  }

  async close(): Promise<void> {
    await this.test.close();
    rmSync(this.test.dataDir, { recursive: true, force: true });
  }
}

async function createKeys(file: string): Promise<Readonly<Record<string, string>>> {
  const apiKeys = openApiKeys({ file });
  const roles: Role[] = ['caller', 'approver', 'admin'];
  const keys: Record<string, string> = {};
  keys.other = await apiKeys.create({ subject: 'eve', tenant: 'rivals', roles });
  for (const role of ROLES) {
    const agent = role === 'agent' ? { agent: 'refund-worker' } : {};
    keys[role] = await apiKeys.create({
      subject: role,
      tenant: 'default',
      roles: [role],
      ...agent,
    });
  }
  keys.revoked = await apiKeys.create({ subject: 'bob', tenant: 'default', roles });
  await apiKeys.revoke(keys.revoked.split('_')[1] ?? '');
  return keys;
}

/** Creates a run that waits for an approval, and a halt that it lifts. */
async function createResources(test: TestPlatform): Promise<Resources> {
  const { runs, approvals, control } = test.client;
  const { run } = await runs.startRun({
    requestId: newId('req'),
    agent: 'refund-worker',
    goal: GOAL,
    model: 'sim-escalate-1200',
  });
  const { runId = '', tenant = '', sessionId: session = '' } = run ?? {};
  const victim = { tenant, runId, instance: run?.agent?.instance ?? '' };
  const approvalId = await vi.waitFor(async () => {
    const [approval] = (await approvals.listApprovals({ runId })).approvals;
    if (approval === undefined) throw new Error('The run has no approval yet.');
    return approval.approvalId;
  });
  const scope = { kind: { case: 'run', value: { tenant, runId } } } as const;
  const { halt } = await control.halt({ requestId: newId('req'), scope, reason: GOAL });
  const haltId = halt?.haltId ?? '';
  await control.resume({ requestId: newId('req'), haltId });
  const ids = {
    tenant,
    run_id: runId,
    agent_instance: victim.instance,
    approval_id: approvalId,
    halt_id: haltId,
  };
  return { victim, session, ids };
}
