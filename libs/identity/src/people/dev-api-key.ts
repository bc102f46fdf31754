import { join } from 'node:path';
import { isWritError } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { badFile, createPrivate, readPrivate } from '../keys/private-file.ts';
import { newApiKey, openApiKeys } from './api-keys.ts';
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
 * {@link DEVELOPER}. Never use it in production.
 * @throws InvalidRequestError INVALID_FILE, ConflictError FILE_LOCKED, naming the file and what to do
 */
export async function devApiKey(dataDir: string): Promise<string> {
  const file = join(dataDir, DEV_API_KEY_FILE);
  if (readPrivate(file) === undefined) createPrivate(file, `${newApiKey()}\n`);
  const key = (readPrivate(file) ?? '').trim();
  const apiKeys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
  if (apiKeys.verify(key) !== undefined) return key;
  try {
    await apiKeys.register(key, DEVELOPER);
  } catch (error) {
    if (!isWritError(error) || error.reason !== 'INVALID_API_KEY') throw error;
    throw badFile(file, 'contains no API key; delete it to create a new one', error);
  }
  return key;
}
