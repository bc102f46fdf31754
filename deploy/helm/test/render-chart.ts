import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** A manifest, as far as a test looks into it. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: its schema is checked by another test.
  readonly spec: any;
}

const CHART = resolve(import.meta.dirname, '../writ');
const KUBERNETES = '1.34.0';

/** The chart's manifests as text. @throws Error with helm's words when it does not render */
export function renderChart(helm: string, values: object = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'writ-chart-'));
  const file = join(folder, 'values.json');
  try {
    writeFileSync(file, JSON.stringify(values));
    const args = ['template', 'writ', CHART, '--kube-version', KUBERNETES, '-f', file];
    return execFileSync(helm, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Holds manifests against Kubernetes' own schemas, unknown fields refused. @throws Error naming what does not fit */
export function validateManifests(kubernetesValidate: string, text: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'writ-chart-'));
  const file = join(folder, 'manifests.yaml');
  try {
    writeFileSync(file, text);
    execFileSync(kubernetesValidate, ['--strict', '--quiet', '-k', KUBERNETES, file], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The manifests of a text. */
export function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}
