import type { DescService } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { CORE_SERVICES, callerRow, callerTable, ROLES } from '@writ/identity';
import type { Role } from '@writ/rpc';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BoundaryPlatform } from './boundary-platform.ts';
import { FileIssuer, type TokenAgent, unsigned } from './identities.ts';
import { INTERNAL_RPCS, methodsOf } from './internal-rpcs.ts';
import { closeRawCalls, rawCall } from './raw-call.ts';

const PUBLIC: readonly DescService[] = [
  RunService,
  ApprovalService,
  AuditService,
  ControlService,
  UsageService,
  CallerService,
];
/** RPCs that are not tested: those that tool providers serve, and the public keys. */
const NOT_TESTED = /^writ\.(tool\.v1\.ToolProviderService|identity\.v1\.KeyService)\//;

const PUBLIC_RPCS = PUBLIC.flatMap(methodsOf);

/** RPCs that identify one resource; for other tenants, the resource must appear not to exist. */
const NAMES_A_RESOURCE = /\/(Get(?!Balances|Caller)|Cancel|Signal|Decide|Resume|Halt$|WatchRun$)/;
/** How long to read from a stream that may be endless. */
const READ_MS = 250;

const { OK, UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND, INVALID_ARGUMENT, UNAVAILABLE } = status;

let boundary: BoundaryPlatform;
beforeAll(async () => {
  boundary = await BoundaryPlatform.start();
});
afterAll(async () => {
  closeRawCalls();
  await boundary.close();
});

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
      'another scheme': { authorization: `Basic ${boundary.test.platform.apiKey}` },
      'an unknown key': bearer(`writ_${'a'.repeat(12)}_${'A'.repeat(43)}`),
      'a changed key': bearer(`${boundary.test.platform.apiKey.slice(0, -1)}_`),
      'a revoked key': bearer(boundary.keys.revoked ?? ''),
      'an expired token': bearer(boundary.issuer.token({ exp: 1 })),
      'a token of another issuer': bearer(boundary.issuer.token({ iss: 'https://else.example' })),
      'a token signed by another key': bearer(new FileIssuer().token()),
      'an unsigned token': bearer(unsigned(boundary.issuer.token())),
      'a token for another audience': bearer(boundary.issuer.token({ aud: 'else' })),
      'a token without a tenant': bearer(boundary.issuer.token({ tenant: undefined })),
      "a service's token": bearer(await boundary.forge.service('supervisor', 'supervisor')),
      "an agent's token": bearer(await boundary.forge.agent(boundary.victim, 'supervisor')),
    };
    const answers = await Promise.all(
      Object.entries(invalid).map(async ([name, headers]) => {
        const { code, bytes } = await rawCall(
          boundary.edge,
          method,
          boundary.request(method),
          headers,
        );
        return [name, code, bytes.length];
      }),
    );
    expect(answers).toEqual(Object.keys(invalid).map((name) => [name, UNAUTHENTICATED, 0]));
  });

  it.each(PUBLIC_RPCS)(
    'denies %s to roles that may not call it, and to keys of agents (SYS-6, AP-1)',
    async (_, method) => {
      const row = callerRow(method);
      const allowed: readonly Role[] = row !== undefined && 'people' in row ? row.people : [];
      expect(allowed).not.toEqual([]);
      for (const role of [...ROLES.filter((one) => !allowed.includes(one)), 'unknown']) {
        for (const token of [boundary.keys[role], boundary.issuer.token({ roles: [role] })]) {
          if (token === undefined) continue;
          const { code } = await rawCall(
            boundary.edge,
            method,
            boundary.request(method),
            bearer(token),
          );
          expect(code, role).toBe(PERMISSION_DENIED);
        }
      }
    },
  );

  it.each(PUBLIC_RPCS)(
    'hides the resources of a tenant when another tenant calls %s (SYS-6)',
    async (rpc, method) => {
      const tenant = 'rivals';
      const own = ['caller', 'approver', 'admin'];
      for (const token of [
        boundary.keys.other ?? '',
        boundary.issuer.token({ tenant, roles: own }),
      ]) {
        const namesResource = NAMES_A_RESOURCE.test(rpc);
        const streamMs = namesResource ? undefined : READ_MS;
        const headers = bearer(token);
        const answer = await rawCall(
          boundary.edge,
          method,
          boundary.request(method),
          headers,
          streamMs,
        );
        expect(boundary.leaks(answer.bytes)).toEqual([]);
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
        boundary.edge,
        method,
        boundary.request(method),
        bearer(boundary.issuer.token()),
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
      const token = await boundary.forge.service(caller, server);
      const invalid: Record<string, Record<string, string>> = {
        'no token': {},
        'an API key': bearer(boundary.test.platform.apiKey),
        'a token for another audience': bearer(await boundary.forge.service(caller, otherServer)),
        'an expired token': bearer(await boundary.forge.service(caller, server, { expired: true })),
        'a token signed by another key': bearer(
          await boundary.forge.service(caller, server, { otherKey: true }),
        ),
        'an unsigned token': bearer(unsigned(token)),
        "an agent's token": bearer(await boundary.forge.agent(boundary.victim, 'supervisor')),
      };
      for (const [name, headers] of Object.entries(invalid)) {
        const { code, bytes } = await rawCall(
          boundary.test.platform.addresses[server],
          method,
          boundary.request(method),
          headers,
        );
        expect([name, code, bytes.length]).toEqual([name, UNAUTHENTICATED, 0]);
      }
      for (const other of CORE_SERVICES.filter((name) => !allowed.includes(name))) {
        const { code, message } = await rawCall(
          boundary.test.platform.addresses[server],
          method,
          boundary.request(method),
          bearer(await boundary.forge.service(other, server)),
        );
        // The server does not trust the keys of a service that may call none of its RPCs.
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
      const allowExpired = row !== undefined && 'services' in row && row.agentTokenOfAnyTime;
      const foreign = {
        tenant: 'rivals',
        runId: boundary.victim.runId,
        instance: boundary.victim.instance,
      };
      const sibling = { ...boundary.victim, runId: 'run-of-another' };
      const good = await boundary.forge.agent(boundary.victim, server);
      const otherServer = server === 'supervisor' ? 'execution-meter' : 'supervisor';
      const call = async (
        agentToken: string,
        grantOf: TokenAgent = boundary.victim,
        tenants: string[] = [],
      ) =>
        await rawCall(boundary.test.platform.addresses[server], method, boundary.request(method), {
          ...bearer(await boundary.forge.service('agent-worker', server, { tenants })),
          ...(agentToken !== '' && { 'writ-agent-token': agentToken }),
          'writ-slot-grant': await boundary.forge.grant(grantOf),
          'writ-epoch': '1000',
        });
      const codes = {
        'no token': (await call('')).code,
        'a token for another audience': (
          await call(await boundary.forge.agent(boundary.victim, otherServer))
        ).code,
        'an unsigned token': (await call(unsigned(good))).code,
        ...(!allowExpired && {
          'an expired token': (
            await call(await boundary.forge.agent(boundary.victim, server, true))
          ).code,
        }),
      };
      for (const [name, code] of Object.entries(codes)) {
        expect([name, code]).toEqual([name, UNAUTHENTICATED]);
      }
      expect((await call(good, boundary.victim, ['rivals'])).code).toBe(PERMISSION_DENIED);
      // A slot grant of another agent is not valid for this agent.
      for (const other of [foreign, sibling]) {
        expect((await call(good, other)).code).toBe(PERMISSION_DENIED);
      }
      // An agent of another tenant or run is authenticated, but cannot see this run.
      for (const other of [foreign, sibling]) {
        const answer = await call(await boundary.forge.agent(other, server), other);
        expect(boundary.leaks(answer.bytes)).toEqual([]);
        if (answer.code === OK) expect(method.name).toMatch(/^List/);
      }
    },
  );
});
