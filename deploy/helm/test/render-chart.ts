import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** A manifest, with the fields that tests read. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: another test validates the manifest against its schema.
  readonly spec: any;
}

const CHART = resolve(import.meta.dirname, '../writ');
const KUBERNETES = '1.34.0';

/** The chart's manifests as text. @throws Error with the message of helm when rendering fails */
export function renderChart(helm: string, values: object = {}, release = 'writ'): string {
  return inFolder((folder) => render(helm, CHART, values, release, folder));
}

/** The installation notes, rendered as the text of a manifest, because `helm template` does not print them. */
export function notesOf(helm: string, values: object): string {
  return inFolder((folder) => {
    const chart = join(folder, 'writ');
    cpSync(CHART, chart, { recursive: true });
    renameSync(join(chart, 'templates/NOTES.txt'), join(chart, 'notes.txt'));
    const manifest = 'kind: Notes\nspec: {{ tpl (.Files.Get "notes.txt") . | quote }}\n';
    writeFileSync(join(chart, 'templates/notes.yaml'), manifest);
    const all = manifestsOf(render(helm, chart, values, 'writ', folder));
    return String(all.find(({ kind }) => kind === 'Notes')?.spec);
  });
}

function render(
  helm: string,
  chart: string,
  values: object,
  release: string,
  folder: string,
): string {
  const file = join(folder, 'values.json');
  writeFileSync(file, JSON.stringify(values));
  const args = ['template', release, chart, '--kube-version', KUBERNETES, '-f', file];
  return execFileSync(helm, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder },
  });
}

function inFolder(work: (folder: string) => string): string {
  const folder = mkdtempSync(join(tmpdir(), 'writ-chart-'));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Validates manifests against the schemas of Kubernetes; unknown fields are invalid.
 * @throws Error if a manifest is invalid
 */
export function validateManifests(kubernetesValidate: string, text: string): void {
  inFolder((folder) => {
    const file = join(folder, 'manifests.yaml');
    writeFileSync(file, text);
    return execFileSync(kubernetesValidate, ['--strict', '--quiet', '-k', KUBERNETES, file], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  });
}

/** The manifests of a text. */
export function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}
