import { join } from 'node:path';
import type { Person } from '@writ/rpc';
import {
  badFile,
  fileStamp,
  readPrivate,
  replacePrivate,
  whileLocked,
} from '../keys/private-file.ts';
import { apiKeyId, newApiKey, openApiKeys } from './api-keys.ts';
import { API_KEYS_FILE, DEV_API_KEY_FILE } from './key-files.ts';

/** The person of the development key. */
export const DEVELOPER: Person = {
  subject: 'developer',
  tenant: 'default',
  roles: ['caller', 'approver', 'admin', 'operator'],
};

/**
 * Returns the API key of a development installation: created by the first start, stored as text in
 * `<dataDir>/dev-api-key` and registered in `<dataDir>/api-keys.json`, both mode 0600. It acts as
 * {@link DEVELOPER}. A revoked key is replaced by a new one. Never use it in production.
 * @throws InvalidRequestError INVALID_FILE, ConflictError FILE_LOCKED, naming the file and what to do
 */
export async function devApiKey(dataDir: string): Promise<string> {
  const file = join(dataDir, DEV_API_KEY_FILE);
  const keysFile = join(dataDir, API_KEYS_FILE);
  const apiKeys = openApiKeys({ file: keysFile });
  const validKey = (): string | undefined => {
    const stored = readKey(file);
    return stored !== undefined && apiKeys.verify(stored) !== undefined ? stored : undefined;
  };
  return (
    validKey() ??
    (await whileLocked(file, async () => {
      const known = validKey();
      if (known !== undefined) return known;
      // A key that api-keys.json does not contain was revoked, unless the whole file was lost.
      const isLost = fileStamp(keysFile) === undefined;
      const stored = isLost ? readKey(file) : undefined;
      const key = stored ?? newApiKey();
      if (stored === undefined) replacePrivate(file, `${key}\n`);
      await apiKeys.register(key, DEVELOPER);
      return key;
    }))
  );
}

/** Reads the text of the key; undefined when the file does not exist. */
function readKey(file: string): string | undefined {
  const key = readPrivate(file)?.trim();
  if (key !== undefined && apiKeyId(key) === undefined)
    throw badFile(file, 'contains no API key; delete it to create a new one');
  return key;
}
