import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import {
  API_KEYS_FILE,
  CORE_SERVICES,
  callerRow,
  callerTable,
  openApiKeys,
  ROLES,
} from '@writ/identity';
import { newId } from '@writ/kernel';
import type { Role } from '@writ/rpc';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FileIssuer, Forge, type TokenAgent, unsigned } from './identities.ts';
import { INTERNAL_RPCS, methodsOf } from './internal-rpcs.ts';
import { closeRawCalls, rawCall } from './raw-call.ts';
import { requestFor } from './request-for.ts';

const PUBLIC: readonly DescService[] = [
  RunService,
  ApprovalService,
  AuditService,
  ControlService,
  UsageService,
  CallerService,
];
/** Served by tool providers, and the public keys. */
const NOT_TESTED = /^writ\.(tool\.v1\.ToolProviderService|identity\.v1\.KeyService)\//;

const PUBLIC_RPCS = PUBLIC.flatMap(methodsOf);

/** RPCs that identify one resource, which does not exist for other tenants. */
const NAMES_A_RESOURCE = /\/(Get(?!Balances|Caller)|Cancel|Signal|Decide|Resume|Halt$|WatchRun$)/;
/** How long to read from a stream that may be endless. */
const READ_MS = 250;

const PATIENT = { timeout: 30_000 };
const GOAL = 'Refund Anna quietly.';
const { OK, UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND, INVALID_ARGUMENT, UNAVAILABLE } = status;

let dataDir: string;
let test: TestPlatform;
let forge: Forge;
let victim: TokenAgent;
/** Resources of the tenant `default`, by request field. */
let things: Record<string, string>;
let session: string;
const issuer = new FileIssuer();
const keys: Record<string, string> = {};

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-boundaries-'));
  const jwks = join(dataDir, 'issuer.json');
  writeFileSync(jwks, issuer.jwks);
  const apiKeys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
  const everyRole: Role[] = ['caller', 'approver', 'admin'];
  keys.other = await apiKeys.create({ subject: 'eve', tenant: 'rivals', roles: everyRole });
  for (const role of ROLES) {
    const agent = role === 'agent' ? { agent: 'refund-worker' } : {};
    keys[role] = await apiKeys.create({
      subject: role,
      tenant: 'default',
      roles: [role],
      ...agent,
    });
  }
  keys.revoked = await apiKeys.create({ subject: 'bob', tenant: 'default', roles: everyRole });
  await apiKeys.revoke(keys.revoked.split('_')[1] ?? '');
  test = await startTestPlatform({
    dataDir,
    env: {
      WRIT_OIDC_ISSUER: issuer.name,
      WRIT_OIDC_AUDIENCE: issuer.audience,
      WRIT_OIDC_JWKS_FILE: jwks,
    },
  });
  forge = new Forge(dataDir);
  await createResources();
});
afterAll(async () => {
  closeRawCalls();
  await test.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Creates a run that waits for an approval, and a halt. */
async function createResources(): Promise<void> {
  const { runs, approvals, control } = test.client;
  const { run } = await runs.startRun({
    requestId: newId('req'),
    agent: 'refund-worker',
    goal: GOAL,
    model: 'sim-escalate-1200',
  });
  const { runId = '', tenant = '', sessionId = '' } = run ?? {};
  session = sessionId;
  victim = { tenant, runId, instance: run?.agent?.instance ?? '' };
  const approvalId = await vi.waitFor(async () => {
    const [approval] = (await approvals.listApprovals({ runId })).approvals;
    if (approval === undefined) throw new Error('The run has no approval yet.');
    return approval.approvalId;
  }, PATIENT);
  const scope = { kind: { case: 'run', value: { tenant, runId } } } as const;
  const { halt } = await control.halt({ requestId: newId('req'), scope, reason: GOAL });
  const haltId = halt?.haltId ?? '';
  await control.resume({ requestId: newId('req'), haltId });
  things = {
    tenant,
    run_id: runId,
    agent_instance: victim.instance,
    approval_id: approvalId,
    halt_id: haltId,
  };
}

/** A valid request that names these resources. */
function request(method: DescMethod): Uint8Array {
  // Caps of a run are another case of SetCaps.
  const { run_id, ...others } = things;
  return requestFor(method.input, {
    ...(method.name === 'SetCaps' ? others : things),
    request_id: newId('req'),
    agent: 'refund-worker',
    goal: 'Something else.',
    reason: 'Because.',
    name: 'poke',
    priority: 'PRIORITY_HIGH',
    level: 'BUDGET_LEVEL_TENANT_DAY',
  });
}

function leaks(bytes: Buffer): string[] {
  const text = bytes.toString('latin1');
  const { run_id, approval_id, halt_id, agent_instance } = things;
  return [GOAL, session, run_id, approval_id, halt_id, agent_instance].filter(
    (thing): thing is string => thing !== undefined && text.includes(thing),
  );
}

const edge = () => new URL(test.platform.edgeUrl).host;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

it('the tests cover every RPC of the caller table (SYS-6)', () => {
  const tested = [...PUBLIC_RPCS, ...INTERNAL_RPCS].map(([rpc]) => rpc);
  const known = [...callerTable.keys()].filter((rpc) => !NOT_TESTED.test(rpc));
  expect(tested.toSorted()).toEqual(known.toSorted());
});

describe('the public endpoint', () => {
  it.each(PUBLIC_RPCS)('rejects %s without valid credentials (SYS-4, SYS-6)', async (_, method) => {
    const invalid = {
      'no key': {},
      'an empty key': bearer(''),
      'another scheme': { authorization: `Basic ${test.platform.apiKey}` },
      'an unknown key': bearer(`writ_${'a'.repeat(12)}_${'A'.repeat(43)}`),
      'a changed key': bearer(`${test.platform.apiKey.slice(0, -1)}_`),
      'a revoked key': bearer(keys.revoked ?? ''),
      'an expired token': bearer(issuer.token({ exp: 1 })),
      'a token of another issuer': bearer(issuer.token({ iss: 'https://else.example' })),
      'a token signed by another key': bearer(new FileIssuer().token()),
      'an unsigned token': bearer(unsigned(issuer.token())),
      'a token for another audience': bearer(issuer.token({ aud: 'else' })),
      'a token without a tenant': bearer(issuer.token({ tenant: undefined })),
      "a service's token": bearer(await forge.service('supervisor', 'supervisor')),
      "an agent's token": bearer(await forge.agent(victim, 'supervisor')),
    };
    const answers = await Promise.all(
      Object.entries(invalid).map(async ([name, headers]) => {
        const { code, bytes } = await rawCall(edge(), method, request(method), headers);
        return [name, code, bytes.length];
      }),
    );
    expect(answers).toEqual(Object.keys(invalid).map((name) => [name, UNAUTHENTICATED, 0]));
  });

  it.each(PUBLIC_RPCS)(
    'denies %s to other roles, and to keys of agents (SYS-6, AP-1)',
    async (_, method) => {
      const row = callerRow(method);
      const allowed: readonly Role[] = row !== undefined && 'people' in row ? row.people : [];
      expect(allowed).not.toEqual([]);
      for (const role of [...ROLES.filter((one) => !allowed.includes(one)), 'unknown']) {
        for (const token of [keys[role], issuer.token({ roles: [role] })]) {
          if (token === undefined) continue;
          const { code } = await rawCall(edge(), method, request(method), bearer(token));
          expect(code, role).toBe(PERMISSION_DENIED);
        }
      }
    },
  );

  it.each(PUBLIC_RPCS)(
    'hides the resources of a tenant from %s of another tenant (SYS-6)',
    async (rpc, method) => {
      const tenant = 'rivals';
      const own = ['caller', 'approver', 'admin'];
      for (const token of [keys.other ?? '', issuer.token({ tenant, roles: own })]) {
        const namesResource = NAMES_A_RESOURCE.test(rpc);
        const streamMs = namesResource ? undefined : READ_MS;
        const headers = bearer(token);
        const answer = await rawCall(edge(), method, request(method), headers, streamMs);
        expect(leaks(answer.bytes)).toEqual([]);
        if (namesResource) expect(answer.code, answer.message).toBe(NOT_FOUND);
      }
    },
  );

  it('accepts the same requests from the tenant itself (SYS-6)', async () => {
    const refused: readonly number[] = [
      UNAUTHENTICATED,
      PERMISSION_DENIED,
      NOT_FOUND,
      INVALID_ARGUMENT,
    ];
    const allRefused = [];
    for (const [rpc, method] of PUBLIC_RPCS) {
      const { code, message } = await rawCall(
        edge(),
        method,
        request(method),
        bearer(issuer.token()),
        READ_MS,
      );
      if (refused.includes(code)) allRefused.push([rpc, code, message]);
    }
    expect(allRefused).toEqual([]);
  });
});

describe('between services', () => {
  it.each(INTERNAL_RPCS)(
    'reject %s without a valid service token, and from services that may not call it (SYS-4, SYS-6, SUP-9)',
    async (_, method, server) => {
      const row = callerRow(method);
      const allowed = CORE_SERVICES.filter(
        (name) => row !== undefined && 'services' in row && row.services.includes(name),
      );
      const [caller = 'supervisor'] = allowed;
      const otherServer = CORE_SERVICES.find((name) => name !== server) ?? 'supervisor';
      const token = await forge.service(caller, server);
      const invalid: Record<string, Record<string, string>> = {
        'no token': {},
        'an API key': bearer(test.platform.apiKey),
        'a token for another audience': bearer(await forge.service(caller, otherServer)),
        'an expired token': bearer(await forge.service(caller, server, { expired: true })),
        'a token signed by another key': bearer(
          await forge.service(caller, server, { otherKey: true }),
        ),
        'an unsigned token': bearer(unsigned(token)),
        "an agent's token": bearer(await forge.agent(victim, 'supervisor')),
      };
      for (const [name, headers] of Object.entries(invalid)) {
        const { code, bytes } = await rawCall(
          test.platform.addresses[server],
          method,
          request(method),
          headers,
        );
        expect([name, code, bytes.length]).toEqual([name, UNAUTHENTICATED, 0]);
      }
      for (const other of CORE_SERVICES.filter((name) => !allowed.includes(name))) {
        const { code, message } = await rawCall(
          test.platform.addresses[server],
          method,
          request(method),
          bearer(await forge.service(other, server)),
        );
        // A service that calls no RPC here is not in the trust list.
        const isUntrusted = /^The keys of .* are unavailable/.test(message);
        expect([other, code], message).toEqual([
          other,
          isUntrusted ? UNAVAILABLE : PERMISSION_DENIED,
        ]);
      }
    },
  );

  it.each(
    INTERNAL_RPCS.filter(([, method]) => {
      const row = callerRow(method);
      return row !== undefined && 'services' in row && row.agentToken === 'required';
    }),
  )(
    'reject %s from a worker without a valid token of an agent that it serves (SYS-6, SUP-9)',
    async (_, method, server) => {
      const row = callerRow(method);
      const allowExpired = row !== undefined && 'services' in row && row.allowExpiredAgentToken;
      const foreign = { tenant: 'rivals', runId: victim.runId, instance: victim.instance };
      const sibling = { ...victim, runId: 'run-of-another' };
      const good = await forge.agent(victim, server);
      const otherServer = server === 'supervisor' ? 'execution-meter' : 'supervisor';
      const call = async (
        agentToken: string,
        grantOf: TokenAgent = victim,
        tenants: string[] = [],
      ) =>
        await rawCall(test.platform.addresses[server], method, request(method), {
          ...bearer(await forge.service('agent-worker', server, { tenants })),
          ...(agentToken !== '' && { 'writ-agent-token': agentToken }),
          'writ-slot-grant': await forge.grant(grantOf),
          'writ-epoch': '1000',
        });
      const codes = {
        'no token': (await call('')).code,
        'a token for another audience': (await call(await forge.agent(victim, otherServer))).code,
        'an unsigned token': (await call(unsigned(good))).code,
        ...(!allowExpired && {
          'an expired token': (await call(await forge.agent(victim, server, true))).code,
        }),
      };
      for (const [name, code] of Object.entries(codes)) {
        expect([name, code]).toEqual([name, UNAUTHENTICATED]);
      }
      expect((await call(good, victim, ['rivals'])).code).toBe(PERMISSION_DENIED);
      // A slot grant of another agent is not valid for this one.
      for (const other of [foreign, sibling]) {
        expect((await call(good, other)).code).toBe(PERMISSION_DENIED);
      }
      // An agent of another tenant or run is authenticated, but cannot see this run.
      for (const other of [foreign, sibling]) {
        const answer = await call(await forge.agent(other, server), other);
        expect(leaks(answer.bytes)).toEqual([]);
        if (answer.code === OK) expect(method.name).toMatch(/^List/);
      }
    },
  );
});
