import { readFileSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createPrivateFolder, type JsonValue, keepOwner, newId } from '@writ/kernel';

/**
 * Reads a file; undefined if there is none.
 * @param parse returns the content, or undefined if it is invalid; the value is undefined if the file is not JSON
 * @param unreadable returns the error for a file that is invalid or cannot be read
 */
export function readJsonFile<T>(
  file: string,
  parse: (value: JsonValue | undefined) => T | undefined,
  unreadable: (file: string, cause?: unknown) => Error,
): T | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw unreadable(file, error);
  }
  const content = parse(parseJson(text));
  if (content === undefined) throw unreadable(file);
  return content;
}

/**
 * Replaces a file atomically; after a crash it has either the old or the new content.
 * @param owned file whose owner the file gets if root replaces it
 */
export async function replaceJsonFile(file: string, content: object, owned = file): Promise<void> {
  createPrivateFolder(dirname(file));
  // Replicas in containers may share the folder and have the same process id.
  const draft = `${file}.${newId('draft')}.tmp`;
  try {
    const handle = await open(draft, 'w', 0o600);
    try {
      keepOwner(handle.fd, owned);
      await handle.writeFile(`${JSON.stringify(content)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}

function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
