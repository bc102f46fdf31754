import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAgentProxyConfig } from '@writ/agent-proxy';
import { CORE_SERVICES, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { readSupervisorConfig } from '@writ/supervisor';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { requireDeployTool } from '../../../scripts/deploy-tools.ts';
import { CONFIG_READERS } from '../../config-readers.ts';
import { type ComposeService, composeText, generated, ROOT, readCompose } from './read-compose.ts';

const compose = readCompose();
const services = Object.entries(compose.services);
const service = (name: ServiceName): ComposeService => compose.services[name] ?? { profiles: [] };
const schemaFile = requireDeployTool('composeSchema');

describe('docker-compose.yml', () => {
  it.skipIf(schemaFile === undefined)('matches the schema of the compose specification', () => {
    const schema = JSON.parse(readFileSync(schemaFile ?? '', 'utf8'));
    const ajv = new Ajv2020({
      strict: false,
      allErrors: true,
      formats: { duration: true, ports: true },
    });
    const validate = ajv.compile(schema);
    const isValid = validate(compose);
    expect(validate.errors ?? []).toEqual([]);
    expect(isValid).toBe(true);
    expect(validate({ services: { a: { imagee: 'x' } } })).toBe(false);
  });

  it('needs only the variables of npm run compose-env, and contains no secret', () => {
    expect(composeText).not.toMatch(/(PASSWORD|KEY|SECRET): +(?!\$\{|simulated$| )/m);
    const passwords = [...generated].filter(([name]) => name.endsWith('PASSWORD'));
    expect(passwords).toHaveLength(14);
    expect(new Set(passwords.map(([, value]) => value)).size).toBe(14);
    for (const [, password] of passwords) expect(password).toMatch(/^p[0-9a-f]{40}$/);
  });

  it('mounts only existing files, and declares every network and volume that it uses', () => {
    for (const [name, { volumes = [], networks = [] }] of services) {
      for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
        const known = source.startsWith('./')
          ? existsSync(join(ROOT, source))
          : source in compose.volumes;
        expect([name, source, known]).toEqual([name, source, true]);
      }
      for (const network of networks) expect(Object.keys(compose.networks)).toContain(network);
    }
  });

  it('removes all unneeded privileges from every container (SYS-6)', () => {
    for (const [name, container] of services) {
      const { read_only, cap_drop, security_opt, user } = container;
      expect({ name, read_only, cap_drop, security_opt }).toEqual({
        name,
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
      if (name !== 'owners') expect(`${name} ${user}`).toMatch(/ [1-9]\d+:[1-9]\d+$/);
    }
  });

  it('starts the services with both profiles, and observability with full only (SYS-5)', () => {
    const inCore = services.filter(([, { profiles }]) => profiles.includes('core'));
    expect(inCore.map(([name]) => name)).toEqual(
      expect.arrayContaining([...SERVICE_NAMES, 'nats', 'postgres', 'simulator']),
    );
    const onlyFull = services.filter(([, { profiles }]) => profiles.join() === 'full');
    expect(onlyFull.map(([name]) => name)).toEqual([
      'otel-collector',
      'jaeger',
      'prometheus',
      'grafana',
    ]);
    for (const [, { depends_on = {} }] of inCore)
      for (const needed of Object.keys(depends_on))
        expect(compose.services[needed]?.profiles).toContain('core');
  });

  it.each([...SERVICE_NAMES])(
    'gives %s only supported settings, with which it can start (SYS-5)',
    (name) => {
      const { environment = {}, command, healthcheck, depends_on } = service(name);
      for (const variable of Object.keys(environment)) expect(declared()).toContain(variable);
      const config = CONFIG_READERS[name]({ ...environment, WRIT_DATA: '/data' });
      expect(config.host).toBe('0.0.0.0');
      expect(config.store).toMatchObject({
        dialect: 'postgres',
        schema: name.replaceAll('-', '_'),
      });
      for (const other of SERVICE_NAMES) {
        const address = environment[`WRIT_${other.toUpperCase().replaceAll('-', '_')}_ADDRESS`];
        expect(address).toBe(`${other}:${CONFIG_READERS[other]({}).port}`);
      }
      expect(command).toEqual([name]);
      expect(healthcheck).toMatchObject({
        test: [...healthCommand(), name],
        // Each check starts a Node process, so the checks are infrequent after the start.
        interval: '30s',
        start_interval: '2s',
      });
      expect(depends_on?.postgres?.condition).toBe('service_healthy');
    },
  );

  it('gives every service a certificate, and requires TLS for NATS and PostgreSQL (SYS-4, SYS-6)', () => {
    for (const name of SERVICE_NAMES) {
      const { environment = {}, volumes } = service(name);
      const { store } = CONFIG_READERS[name](environment);
      if (store.dialect !== 'postgres') throw new Error('unreachable');
      const tls = {
        ca: '/data/tls/ca.crt',
        cert: '/data/tls/service.crt',
        key: '/data/tls/service.key',
      };
      expect(Object.fromEntries(new URL(store.url).searchParams)).toEqual({
        sslmode: 'verify-full',
        sslrootcert: tls.ca,
        sslcert: tls.cert,
        sslkey: tls.key,
      });
      // agent-proxy publishes no events, and NATS has no user for it.
      const isEmitter = CORE_SERVICES.some((each) => each === name);
      expect(environment).toMatchObject({
        WRIT_NATS_URL: isEmitter ? 'tls://nats:4222' : '',
        WRIT_NATS_CA_FILE: isEmitter ? tls.ca : '',
        WRIT_NATS_CERT_FILE: isEmitter ? tls.cert : '',
        WRIT_NATS_KEY_FILE: isEmitter ? tls.key : '',
      });
      expect(environment.WRIT_NATS_PASSWORD !== undefined).toBe(isEmitter);
      expect(volumes).toEqual([`${name}:/data`]);
    }
    const { nats, postgres, prepare, owners } = compose.services;
    expect(nats?.command).toEqual(['-c', '/etc/nats/nats-server-tls.conf']);
    expect(postgres?.command).toEqual(
      expect.arrayContaining(['--ssl=on', '--hba_file=/etc/postgresql/pg_hba.conf']),
    );
    for (const server of [nats, postgres]) expect(server?.depends_on).toHaveProperty('owners');
    expect(owners?.depends_on).toHaveProperty('prepare');
    // NATS and PostgreSQL each mount only their own key; prepare and owners mount both.
    const mountedBy = (volume: string) =>
      services.filter(([, { volumes = [] }]) =>
        volumes.some((each) => each.startsWith(`${volume}:`)),
      );
    for (const volume of ['nats-tls', 'postgres-tls'])
      expect(mountedBy(volume).map(([name]) => name)).toEqual(
        volume === 'nats-tls' ? ['prepare', 'owners', 'nats'] : ['prepare', 'owners', 'postgres'],
      );
    expect(prepare?.network_mode).toBe('none');
    expect(owners?.network_mode).toBe('none');
  });

  it('pins every third-party image of compose, chart and Dockerfile by version and digest (SYS-5)', () => {
    const dockerfile = readFileSync(join(ROOT, 'deploy/docker/Dockerfile'), 'utf8');
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image = '']) => image);
    const values = readFileSync(join(ROOT, 'deploy/helm/writ/values.yaml'), 'utf8');
    const trial = [...values.matchAll(/^ {4}image: (\S+)/gm)].map(([, image = '']) => image);
    const composed = services
      .map(([, { image = '' }]) => image)
      .filter((image) => image !== 'writ');
    expect([bases.length, trial.length, composed.length > 0]).toEqual([2, 2, true]);
    for (const image of [...bases, ...trial, ...composed]) {
      expect(image).toMatch(/^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
    }
    for (const image of trial) expect(composed).toContain(image);
    expect(compose.services.jaeger?.image).toMatch(/^jaegertracing\/jaeger:2\./);
  });

  it('gives the cli container the address of the supervisor and a shared network (PE-2)', () => {
    const { environment, networks = [] } = compose.services.cli ?? {};
    expect(environment?.WRIT_ADDRESS).toBe(
      `http://supervisor:${readSupervisorConfig({}).edge.port}`,
    );
    expect(service('supervisor').networks).toEqual(expect.arrayContaining([...networks]));
  });

  it('publishes ports on loopback only, and the public port as 8080', () => {
    const published = services.flatMap(([, { ports = [] }]) => ports);
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:/);
    expect(service('supervisor').ports).toEqual([
      `127.0.0.1:8080:${readSupervisorConfig({}).edge.port}`,
    ]);
    expect(service('agent-proxy').ports).toEqual([
      `127.0.0.1:8081:${readAgentProxyConfig({}).endpoint.port}`,
    ]);
  });

  it('gives external agents a URL with a host name that agent-proxy accepts (AP-1)', () => {
    const { environment = {} } = service('supervisor');
    const { endpoint, hosts } = readAgentProxyConfig(service('agent-proxy').environment ?? {});
    const { hostname, port, pathname } = new URL(environment.WRIT_AGENT_PROXY_URL ?? '');
    expect({ hostname, port, pathname }).toEqual({
      hostname: '127.0.0.1',
      port: String(endpoint.port),
      pathname: '/v1',
    });
    expect(endpoint.host).toBe('0.0.0.0');
    expect(hosts).toEqual(expect.arrayContaining([hostname, 'agent-proxy']));
    // On this network, an agent container can reach only agent-proxy.
    expect(compose.networks.agents?.internal).toBe(true);
    const attached = services.filter(([, { networks = [] }]) => networks.includes('agents'));
    expect(attached.map(([name]) => name)).toEqual(['agent-proxy']);
  });

  it('passes key, address, model and timeout of the provider to the meter alone (EM-6)', () => {
    const names = ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_MODEL', 'OPENAI_TIMEOUT_SECONDS'];
    for (const [name, { environment = {} }] of services) {
      const passed = Object.keys(environment).filter((each) => each.startsWith('OPENAI_'));
      expect([name, passed.sort()]).toEqual([name, name === 'execution-meter' ? names : []]);
    }
    for (const name of names) expect(composeText).toContain(`${name}: \${${name}:-}`);
  });

  it('gives Internet access only to the meter and the gateway, not to the worker (SYS-6)', () => {
    const external = (name: ServiceName) =>
      (service(name).networks ?? []).filter(
        (network) => compose.networks[network]?.internal !== true,
      );
    expect(Object.fromEntries(SERVICE_NAMES.map((name) => [name, external(name)]))).toEqual({
      supervisor: ['public'],
      'spawn-budget': [],
      'execution-meter': ['models'],
      'tool-gateway': ['tools'],
      'agent-worker': [],
      // Published ports need a network that is not internal.
      'agent-proxy': ['public'],
    });
  });
});

/** Returns each word in capitals, such as a setting, in the settings reference, libs/service and the models file. */
function declared(): Set<string> {
  const files = globSync(
    ['docs/reference/settings.md', 'libs/service/src/**/*.ts', 'examples/refund-desk/models.yaml'],
    { cwd: ROOT },
  );
  const names = files.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8').match(/\b[A-Z][A-Z0-9_]{3,}\b/g),
  );
  return new Set(names.flatMap((found) => found ?? []));
}

function healthCommand(): string[] {
  return ['CMD', '/usr/local/bin/node', 'deploy/docker/health.ts'];
}
