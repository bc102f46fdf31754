import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import type { Role } from '@writ/rpc';
import { beforeAll, describe, expect, it } from 'vitest';
import { AGENT, CLAIMS, createWorld, suiteDir, type World } from '../../test/fixtures.ts';
import { publicGate } from '../people/public-gate.ts';
import { ROLES } from '../people/roles.ts';
import { assertRows, callerTable, rpcKey } from './caller-table.ts';
import { internalGate } from './internal-gate.ts';
import {
  EVERY_SERVICE,
  SERVICE_NAMES,
  type ServerName,
  type ServiceName,
  TOOL_PROVIDER,
} from './names.ts';

// The expected calls of each caller, listed independently of the table so that the test detects a mistake in the table.
const WORKER_MAY = [
  'writ.supervision.v1.SupervisionService/GetManifest',
  'writ.supervision.v1.SupervisionService/SpawnChild',
  'writ.supervision.v1.SupervisionService/EndChild',
  'writ.supervision.v1.SupervisionService/RefreshTokens',
  'writ.supervision.v1.SupervisionService/ReportOutcome',
  'writ.review.v1.ReviewService/ReviewAction',
  'writ.review.v1.ReviewService/GetDecision',
  'writ.review.v1.ReviewService/WithdrawAction',
  'writ.spawn.v1.SpawnBudgetService/Renew',
  'writ.spawn.v1.SpawnBudgetService/WatchPauses',
  'writ.model.v1.ModelService/Generate',
  'writ.model.v1.ModelService/CountTokens',
  'writ.model.v1.ModelService/AccessResponse',
  'writ.model.v1.ModelService/ListModels',
  'writ.meter.v1.ExecutionMeterService/GetTab',
  'writ.tool.v1.ToolGatewayService/ListTools',
  'writ.tool.v1.ToolGatewayService/CallTool',
  'writ.tool.v1.ToolGatewayService/GetReceipt',
];
const OPENS_RUNS = 'writ.supervision.v1.SupervisionService/OpenExternalRun';
const GATEWAY_MAY =
  /^writ\.(supervision\.v1\.SupervisionService\/ReportReceipts$|tool\.v1\.ToolProviderService\/)/;
const SUPERVISOR_MAY = /^writ\.(spawn|meter|model|tool|worker)\.v1\./;
const SUPERVISOR_MAY_NOT = /\/(Generate|CountTokens|AccessResponse|CallTool)$|ToolProviderService/;
const PUBLIC = /^writ\.((run|approval|audit|control|usage)\.v1\.|identity\.v1\.CallerService)/;
const OPEN = 'writ.identity.v1.KeyService/GetKeys';

const SERVER_OF: Readonly<Record<string, ServerName>> = {
  'writ.supervision.v1.SupervisionService': 'supervisor',
  'writ.review.v1.ReviewService': 'supervisor',
  'writ.spawn.v1.SpawnBudgetService': 'spawn-budget',
  'writ.meter.v1.ExecutionMeterService': 'execution-meter',
  'writ.model.v1.ModelService': 'execution-meter',
  'writ.tool.v1.ToolGatewayService': 'tool-gateway',
  'writ.tool.v1.ToolProviderService': TOOL_PROVIDER,
  'writ.worker.v1.AgentWorkerService': 'agent-worker',
};

function mayCall(service: ServiceName, rpc: string): boolean {
  switch (service) {
    case 'agent-worker':
      return WORKER_MAY.includes(rpc);
    case 'agent-proxy':
      return WORKER_MAY.includes(rpc) || rpc === OPENS_RUNS;
    case 'supervisor':
      return SUPERVISOR_MAY.test(rpc) && !SUPERVISOR_MAY_NOT.test(rpc);
    case 'tool-gateway':
      return GATEWAY_MAY.test(rpc);
    case 'spawn-budget':
    case 'execution-meter':
      return false;
  }
}

/** Every service of the contracts, found in the generated files. */
async function contractServices(): Promise<DescService[]> {
  const sample = fileURLToPath(import.meta.resolve('@writ/contracts/writ/run/v1/run_pb'));
  const root = join(dirname(sample), '../../..');
  const files = readdirSync(join(root, 'writ'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name.endsWith('_service_pb.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replace(/\.ts$/, ''));
  const modules = await Promise.all(
    files.map((file) => import(/* @vite-ignore */ `@writ/contracts/${file}`)),
  );
  return modules.flatMap((module: Record<string, unknown>) =>
    Object.values(module).filter(isService),
  );
}

function isService(value: unknown): value is DescService {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'service';
}

describe('caller table', () => {
  const keyDir = suiteDir();
  let world: World;
  let services: DescService[];
  let methods: DescMethod[];
  beforeAll(async () => {
    services = await contractServices();
    methods = services.flatMap((service) => service.methods);
    world = await createWorld(keyDir);
  });

  /** Calls an RPC with all valid credentials that `service` can have. */
  const attempt = async (method: DescMethod, service: ServiceName, enforceSlotGrants = true) => {
    const server = SERVER_OF[method.parent.typeName] ?? 'supervisor';
    const { signers, verifier } = world;
    const ttlMs = 60_000;
    const [identity, agent, grant] = await Promise.all([
      signers[service].sign('service', {
        audience: server,
        claims: { name: service, replica: 'r1' },
        ttlMs,
      }),
      signers.supervisor.sign('agent', { audience: server, claims: CLAIMS.agent, ttlMs }),
      signers['spawn-budget'].sign('slot_grant', {
        audience: EVERY_SERVICE,
        claims: CLAIMS.slot_grant,
        ttlMs,
      }),
    ]);
    const headers: Record<string, string> = {
      authorization: `Bearer ${identity.token}`,
      'writ-agent-token': agent.token,
      'writ-slot-grant': grant.token,
      'writ-epoch': '3',
    };
    const gate = internalGate({ service: server, verifier, enforceSlotGrants });
    return gate({ method, header: (name) => headers[name] });
  };

  it('has exactly one row for every RPC of every package (SYS-6)', () => {
    expect(services.length).toBeGreaterThan(10);
    expect(methods.length).toBeGreaterThan(55);
    expect([...callerTable.keys()].sort()).toEqual(methods.map(rpcKey).sort());
  });

  it('rejects a server with an RPC that has no row (SYS-4)', () => {
    assertRows(services.map((service) => ({ service })));
    const [service] = services;
    if (service === undefined) throw new Error('No services were found.');
    const unlisted = {
      ...service,
      typeName: 'writ.run.v1.Later',
      methods: service.methods.map((m) => ({
        ...m,
        parent: { ...service, typeName: 'writ.run.v1.Later' },
      })),
    };
    expect(() => assertRows([{ service: unlisted }])).toThrow(
      /^writ\.run\.v1\.Later\/\w+ has no row in the caller table/,
    );
  });

  it.each(SERVICE_NAMES)('allows %s exactly its expected calls (SYS-6, SV-6)', async (service) => {
    for (const method of methods.filter((m) => rpcKey(m) !== OPEN)) {
      const rpc = rpcKey(method);
      const outcome = attempt(method, service);
      if (mayCall(service, rpc))
        expect((await outcome).service, rpc).toMatchObject({ name: service });
      else
        await expect(outcome, rpc).rejects.toMatchObject({
          kind: 'permission_denied',
          reason: 'CALLER_NOT_ALLOWED',
        });
    }
  });

  it('denies a worker all other RPCs, naming worker and RPC (SUP-9, TG-1, TG-8)', async () => {
    const denied = methods.filter((m) => rpcKey(m) !== OPEN && !WORKER_MAY.includes(rpcKey(m)));
    expect(denied.length).toBe(methods.length - WORKER_MAY.length - 1);
    for (const method of denied)
      await expect(attempt(method, 'agent-worker')).rejects.toMatchObject({
        reason: 'CALLER_NOT_ALLOWED',
      });
    const openTab = methods.find((m) => m.name === 'OpenTab');
    if (openTab === undefined) throw new Error('OpenTab was not found.');
    await expect(attempt(openTab, 'agent-worker')).rejects.toThrow(
      'agent-worker may not call writ.meter.v1.ExecutionMeterService/OpenTab.',
    );
  });

  it('passes the agent to the handler only if the row requires an agent token (SUP-9)', async () => {
    const withAgent: string[] = [];
    for (const method of methods.filter((m) => WORKER_MAY.includes(rpcKey(m)))) {
      const caller = await attempt(method, 'agent-worker');
      if (caller.agent !== undefined) withAgent.push(method.name);
      if (caller.agent !== undefined) expect(caller.agent.agent).toEqual(AGENT);
    }
    expect(
      WORKER_MAY.map((rpc) => rpc.split('/')[1]).filter((name) => !withAgent.includes(name ?? '')),
    ).toEqual(['Renew', 'WatchPauses', 'CallTool']);
  });

  it('denies internal RPCs on the public port and public RPCs on internal ports (SYS-6)', async () => {
    const person = {
      subject: 'root',
      tenant: 'acme',
      roles: ['caller', 'approver', 'admin'],
    } as const;
    const gate = publicGate({ apiKeys: { verify: () => person } });
    for (const method of methods.filter((m) => rpcKey(m) !== OPEN)) {
      const outcome = gate({ method, header: () => 'Bearer key' });
      if (PUBLIC.test(rpcKey(method))) expect((await outcome).person).toBe(person);
      else await expect(outcome).rejects.toMatchObject({ reason: 'CALLER_NOT_ALLOWED' });
    }
  });

  it('requires the role of each public service; auditors read everything and change nothing (SYS-6, PE-1)', async () => {
    const reads = /^(Get|List|Query|Watch|Export)/;
    const allowed: Readonly<Record<Role, (service: string, rpc: string) => boolean>> = {
      caller: (service, rpc) => /^(Run|Usage|Caller)Service$/.test(service) && rpc !== 'SetCaps',
      approver: (service) => /^(Approval|Caller)Service$/.test(service),
      auditor: (_, rpc) => reads.test(rpc),
      admin: () => true,
      operator: (service) => /^(Control|Usage|Caller)Service$/.test(service),
      // A key with this role is valid only on agent-proxy (AP-1).
      agent: () => false,
    };
    for (const role of ROLES) {
      const gate = publicGate({
        apiKeys: { verify: () => ({ subject: 's', tenant: 'acme', roles: [role] }) },
      });
      for (const method of methods.filter((m) => PUBLIC.test(rpcKey(m)))) {
        const outcome = gate({ method, header: () => 'Bearer key' });
        if (allowed[role](method.parent.name, method.name)) await outcome;
        else
          await expect(outcome).rejects.toMatchObject({
            kind: 'permission_denied',
            reason: 'ROLE_REQUIRED',
          });
      }
    }
  });

  it('allows GetKeys and health checks without credentials on both ports', async () => {
    const getKeys = methods.find((m) => rpcKey(m) === OPEN);
    if (getKeys === undefined) throw new Error('GetKeys was not found.');
    const health = {
      ...getKeys,
      name: 'Check',
      parent: { ...getKeys.parent, typeName: 'grpc.health.v1.Health' },
    };
    const apiKeys = { verify: () => undefined };
    for (const method of [getKeys, health])
      for (const gate of [
        publicGate({ apiKeys }),
        internalGate({ service: 'supervisor', verifier: world.verifier, enforceSlotGrants: true }),
      ])
        expect(await gate({ method, header: () => undefined })).toEqual({ isAnonymous: true });
  });
});
