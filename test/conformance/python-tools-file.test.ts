import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PYTHON_FOLDER } from '../../scripts/python.ts';
import { requirePython } from './python-gateway.ts';

const python = requirePython() ?? '';
const LOAD = `
import pathlib, sys
from gateway.registry import load_registry
try:
    print(sorted(load_registry(pathlib.Path(sys.argv[1])).sources))
except Exception as error:
    print(type(error).__name__, error)
`;
const TOOL = `
  - name: pay
    description: Pays.
    input_schema: { type: object }
    side_effect: destructive
    risk: 0.7
    source: shop`;
const SHOP = 'kind: provider, address: "127.0.0.1:50061"';

/** Loads a tools.yaml in the gateway and returns the names of the sources or the error. */
function load(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'writ-tools-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'tools.yaml');
  writeFileSync(file, text);
  const env = { ...process.env, WRIT_SOURCE_LOCAL: '127.0.0.1:50061' };
  const options = { cwd: PYTHON_FOLDER, env, encoding: 'utf8' } as const;
  return execFileSync(python, ['-c', LOAD, file], options).replaceAll(file, 'tools.yaml').trim();
}

describe.skipIf(python === '')('the tools file of the gateway in Python', () => {
  it('may have every key that the gateway implements (TG-3)', () => {
    expect(load(`tools: ${TOOL}\nsources: { shop: { ${SHOP}, max_in_flight: 8 } }`)).toBe(
      "['shop']",
    );
    // WRIT_SOURCE_LOCAL, which sets the address of a provider, replaces a source of another kind.
    const local = TOOL.replace('source: shop', 'source: local');
    expect(load(`tools: ${local}\nsources: { local: { kind: local, module: ./a.ts } }`)).toBe(
      "['local']",
    );
    const conformance = resolve(import.meta.dirname, 'tools.yaml');
    expect(load(readFileSync(conformance, 'utf8'))).not.toContain('Error');
  });

  it('is rejected when it has a key that the gateway does not support, such as tls (SYS-4)', () => {
    expect(load(`tools: ${TOOL}\nsources: { shop: { ${SHOP}, tls: true } }`)).toBe(
      'ValueError source shop: tls is not supported here.',
    );
    expect(load(`tools: ${TOOL}\n    hidden: true\nsources: { shop: { ${SHOP} } }`)).toBe(
      'ValueError tools.yaml: tool pay: hidden is not supported here.',
    );
    expect(load(`tools: []\nsources: {}\nallow: {}`)).toBe(
      'ValueError tools.yaml: allow is not supported here.',
    );
  });

  it.each(['description', 'input_schema', 'side_effect', 'risk', 'source'])(
    'is rejected when the %s of a tool is missing, because this gateway does not get it from the source (SYS-3)',
    (key) => {
      const tool = TOOL.replace(new RegExp(`\\n {4}${key}:.*`), '');
      expect(load(`tools: ${tool}\nsources: { shop: { ${SHOP} } }`)).toBe(
        `ValueError tools.yaml: tool pay: ${key} is missing; this gateway needs it.`,
      );
    },
  );
});
