import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { watchProject } from './watch-project.ts';

it('yields a change that was made before the first read of changes (PE-3)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-watch-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'agents.yaml'), 'one');
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const changes = watchProject(folder, join(folder, '.writ'), stop.signal);
  writeFileSync(join(folder, 'agents.yaml'), 'changed');
  expect(await changes.next()).toEqual({ done: false, value: ['agents.yaml'] });
});

it('continues when a watched folder is deleted and created again (PE-3)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-watch-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const write = (text: string) => {
    mkdirSync(join(folder, 'agents'), { recursive: true });
    writeFileSync(join(folder, 'agents', 'agents.yaml'), text);
  };
  write('one');
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const changes = watchProject(folder, join(folder, '.writ'), stop.signal);
  const file = join('agents', 'agents.yaml');
  const deleted = changes.next();
  rmSync(folder, { recursive: true });
  expect(await deleted).toEqual({ done: false, value: [file] });
  const created = changes.next();
  write('two');
  expect(await created).toEqual({ done: false, value: [file] });
});

it('does not yield files of the data folder in the project (PE-3)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-watch-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const data = join(folder, 'data');
  mkdirSync(data);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const changes = watchProject(folder, data, stop.signal);
  writeFileSync(join(data, 'trust.json'), '{}');
  writeFileSync(join(folder, 'agents.yaml'), 'one');
  expect(await changes.next()).toEqual({ done: false, value: ['agents.yaml'] });
});

it('does not yield files of a data folder whose path contains a symbolic link (PE-3)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-watch-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const project = join(folder, 'project');
  mkdirSync(project);
  symlinkSync(project, join(folder, 'link'));
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  // The platform creates the data folder after the watch has started.
  const changes = watchProject(project, join(folder, 'link', 'data'), stop.signal);
  mkdirSync(join(project, 'data'));
  writeFileSync(join(project, 'data', 'trust.json'), '{}');
  writeFileSync(join(project, 'agents.yaml'), 'one');
  expect(await changes.next()).toEqual({ done: false, value: ['agents.yaml'] });
});

it('rejects a data folder that is the project (PE-3)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-watch-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  expect(() => watchProject(folder, folder, new AbortController().signal)).toThrow(
    expect.objectContaining({ reason: 'INVALID_FILE' }),
  );
});
