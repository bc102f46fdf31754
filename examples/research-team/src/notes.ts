import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ToolFailure, type ToolFunction } from '@writ/kernel';

const MAX_TEXT_BYTES = 16_384;
/** Limits of one run. */
const MAX_NOTES = 64;
const MAX_BYTES = 262_144;

/**
 * Creates the tool that writes, reads and lists the notes of a run, which all its agents share. Each note is a file
 * below `dataDir`; the input schema permits only names without a path. This example does not delete the files when the
 * run ends.
 */
export function createNoteTool(dataDir: string): ToolFunction {
  return async ({ action, name, text }, { tenant, runId }) => {
    const folder = join(dataDir, 'notes', tenant, runId);
    if (action === 'list') return { notes: listNotes(folder) };
    if (typeof name !== 'string') throw new ToolFailure(`name is required to ${action}.`);
    if (action === 'read') {
      const file = join(folder, name);
      if (!existsSync(file)) throw new ToolFailure(`Note ${name} does not exist.`);
      return { name, text: readFileSync(file, 'utf8') };
    }
    if (typeof text !== 'string') throw new ToolFailure('text is required to write.');
    return { name, size_bytes: writeNote(folder, name, text) };
  };
}

/** Writes or replaces a note, and returns its size in bytes. */
function writeNote(folder: string, name: string, text: string): number {
  const size = Buffer.byteLength(text);
  if (size > MAX_TEXT_BYTES) {
    throw new ToolFailure(`text must have at most ${MAX_TEXT_BYTES} bytes, not ${size}.`);
  }
  const others = listNotes(folder).filter((note) => note.name !== name);
  const total = others.reduce((sum, note) => sum + note.size_bytes, size);
  if (others.length >= MAX_NOTES) throw new ToolFailure(`A run keeps at most ${MAX_NOTES} notes.`);
  if (total > MAX_BYTES) {
    throw new ToolFailure(
      `The notes of a run must have at most ${MAX_BYTES} bytes in total, not ${total}.`,
    );
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text, { flush: true });
  return size;
}

/** The notes in a folder, sorted by name. */
function listNotes(folder: string) {
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return names.map((name) => ({ name, size_bytes: statSync(join(folder, name)).size }));
}
