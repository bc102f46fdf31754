import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { rejectMisspelt } from '@writ/config';
import { CORE_SERVICES, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { readProcessSettings } from '@writ/service';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_READERS } from '../../config-readers.ts';

const FOLDER = resolve(import.meta.dirname, '..');
const ROOT = resolve(FOLDER, '../..');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const UNIT = read('writ@.service');

/** Whether systemd-analyze is installed. */
function hasSystemd(): boolean {
  try {
    execFileSync('systemd-analyze', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    process.stderr.write('skipped: systemd-analyze is missing, so units are not checked with it\n');
    return false;
  }
}

/** The variables of an environment file. */
function variablesOf(name: string): Record<string, string> {
  const lines = read(`env/${name}.env`)
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** The environment of an instance, as systemd composes it. */
function environmentOf(service: ServiceName): Record<string, string> {
  const own = UNIT.matchAll(/^Environment=(\w+)=(.*)$/gm);
  return {
    ...Object.fromEntries(
      [...own].map(([, name = '', value = '']) => [name, value.replaceAll('%i', service)]),
    ),
    ...variablesOf('common'),
    ...variablesOf(service),
  };
}

describe('the systemd units', () => {
  it.skipIf(!hasSystemd())('pass systemd-analyze, which reports an unknown setting (SYS-5)', () => {
    const verify = (unit: string): string => {
      const folder = mkdtempSync(join(tmpdir(), 'writ-units-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      // Replaces the path of Node, which may differ on this machine, and removes the link to the documentation, because
      // nothing is installed below /opt.
      writeFileSync(
        join(folder, 'writ@.service'),
        unit.replace('/usr/local/bin/node', process.execPath).replace(/^Documentation=.*$/m, ''),
      );
      writeFileSync(join(folder, 'writ.target'), read('writ.target'));
      const args = ['-c', 'systemd-analyze verify --man=no "$@" 2>&1 || true', '-'];
      const files = SERVICE_NAMES.map((name) => join(folder, `writ@${name}.service`));
      return execFileSync('sh', [...args, ...files, join(folder, 'writ.target')], {
        encoding: 'utf8',
        env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
      });
    };
    const ofWrit = (output: string) => output.split('\n').filter((line) => line.includes('writ'));
    expect(ofWrit(verify(UNIT))).toEqual([]);
    expect(verify(UNIT.replace('RestartSec', 'RestrtSec'))).toContain('RestrtSec');
  });

  it.each(SERVICE_NAMES)(
    'give %s only supported settings, with which it can start (SYS-5)',
    (service) => {
      const env = environmentOf(service);
      const config = CONFIG_READERS[service](env);
      const { tls, nats, addressOf } = readProcessSettings(env);
      expect(() => rejectMisspelt(env)).not.toThrow();
      expect(config.store).toMatchObject({ dialect: 'postgres' });
      expect(config.dataDir).toBe(`/var/lib/writ/${service}`);
      expect(tls).toBeDefined();
      // agent-proxy publishes no events.
      expect(nats !== undefined).toBe(CORE_SERVICES.some((name) => name === service));
      for (const other of SERVICE_NAMES)
        expect(addressOf(other)).toBe(`127.0.0.1:${CONFIG_READERS[other]({}).port}`);
    },
  );

  it('run each service as a separate unprivileged user (SYS-6)', () => {
    const users = read('writ.sysusers').match(/^u \S+/gm);
    expect(users).toEqual(SERVICE_NAMES.map((name) => `u writ-${name}`));
    expect(UNIT).toMatch(/^User=writ-%i$/m);
    expect(UNIT).toMatch(/^NoNewPrivileges=yes$/m);
    expect(UNIT).toMatch(/^CapabilityBoundingSet=$/m);
    for (const name of CORE_SERVICES)
      expect(read('writ.target')).toContain(`Wants=writ@${name}.service`);
  });

  it('are installed with a tools file whose modules exist (SYS-5)', () => {
    const page = readFileSync(join(ROOT, 'docs/operations/systemd.md'), 'utf8');
    const [, script = ''] = /^sed -i '(.+)' \/etc\/writ\/tools\.yaml$/m.exec(page) ?? [];
    const tools = execFileSync('sed', [script, join(ROOT, 'examples/refund-desk/tools.yaml')]);
    const { sources } = parse(tools.toString()) as {
      readonly sources: Readonly<Record<string, { readonly module?: string }>>;
    };
    const modules = Object.values(sources).flatMap(({ module }) => module ?? []);
    expect(modules.length).toBeGreaterThan(0);
    for (const module of modules) {
      expect(module).toMatch(/^\/opt\/writ\//);
      expect(existsSync(module.replace('/opt/writ', ROOT))).toBe(true);
    }
  });
});
