import { isId, isJsonObject, type JsonValue, omitUndefined } from '@writ/kernel';
import type { Role } from '@writ/rpc';
import { badFile, readPrivate, replacePrivate } from '../keys/private-file.ts';
import { isRole } from './roles.ts';

/** One stored API key, without the key itself. */
export interface ApiKeyRecord {
  /** The public part of the key. */
  readonly id: string;
  /** SHA-256 of the whole key, in hex. A slow hash is not needed for 256 random bits. */
  readonly sha256: string;
  readonly subject: string;
  readonly tenant: string;
  readonly roles: readonly Role[];
  /** With the role `agent`: the manifest to which the key is bound. */
  readonly agent?: string;
  readonly createTime: Date;
}

/**
 * Whether a key may have these roles and this agent: the role `agent` requires an agent and cannot be combined with
 * other roles; a key with other roles has no agent (AP-1).
 */
export function isValidBinding(roles: readonly Role[], agent: unknown): boolean {
  if (!roles.includes('agent')) return agent === undefined;
  return roles.every((role) => role === 'agent') && isId(agent);
}

/** Reads the records of a file; empty when the file does not exist. @throws InvalidRequestError INVALID_FILE */
export function readApiKeyFile(file: string): readonly ApiKeyRecord[] {
  const text = readPrivate(file);
  if (text === undefined) return [];
  let content: JsonValue;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw broken(file, 'it is not JSON', error);
  }
  if (!isJsonObject(content) || !Array.isArray(content.keys))
    throw broken(file, 'it has no list of keys');
  return content.keys.map((entry) => {
    const record = toRecord(entry);
    if (record === undefined) throw broken(file, 'one of its keys is malformed');
    return record;
  });
}

/** Replaces the records atomically and durably, mode 0600. */
export function writeApiKeyFile(file: string, records: readonly ApiKeyRecord[]): void {
  const keys = records.map(({ id, sha256, subject, tenant, roles, agent, createTime }) => ({
    id,
    sha256,
    subject,
    tenant,
    roles,
    ...omitUndefined({ agent }),
    create_time: createTime.toISOString(),
  }));
  replacePrivate(file, `${JSON.stringify({ keys }, null, 2)}\n`);
}

function toRecord(entry: JsonValue): ApiKeyRecord | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { id, sha256, subject, tenant, roles, agent, create_time } = entry;
  if (typeof id !== 'string' || typeof subject !== 'string' || !isId(tenant)) return undefined;
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  if (!Array.isArray(roles) || !roles.every(isRole)) return undefined;
  if (!isValidBinding(roles, agent)) return undefined;
  const createTime = new Date(typeof create_time === 'string' ? create_time : Number.NaN);
  if (Number.isNaN(createTime.getTime())) return undefined;
  return {
    id,
    sha256,
    subject,
    tenant,
    roles,
    ...(typeof agent === 'string' && { agent }),
    createTime,
  };
}

function broken(file: string, why: string, cause?: unknown): Error {
  return badFile(
    file,
    `is not a valid API key file: ${why}; restore it from a backup, or delete it and create new keys`,
    cause,
  );
}
