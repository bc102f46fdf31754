import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  assertId,
  type Clock,
  InvalidRequestError,
  omitUndefined,
  systemClock,
  UnavailableError,
} from '@writ/kernel';
import type { Person, Role } from '@writ/rpc';
import { fileStamp, whileLocked } from '../keys/private-file.ts';
import {
  type ApiKeyRecord,
  isValidBinding,
  readApiKeyFile,
  writeApiKeyFile,
} from './api-key-file.ts';
import { isRole, ROLES } from './roles.ts';

/** The public information about a key. */
export type ApiKeyInfo = Omit<ApiKeyRecord, 'sha256'>;

/** The API keys of people and of external agents. Only the SHA-256 of a key is stored. */
export interface ApiKeys {
  /**
   * Returns the person of a key; undefined for an unknown key. Secrets are compared in constant time.
   * @throws UnavailableError API_KEYS_UNREADABLE
   */
  verify(key: string): Person | undefined;
  /**
   * Creates a key durably. Its text is returned only once and is not stored.
   * @throws InvalidRequestError INVALID_ID, INVALID_ROLES, INVALID_SUBJECT, INVALID_FILE; ConflictError FILE_LOCKED
   */
  create(person: Person): Promise<string>;
  /**
   * Registers a key whose text already exists. A key that is registered already keeps its person and roles.
   * @throws InvalidRequestError INVALID_API_KEY, and what `create` throws
   */
  register(key: string, person: Person): Promise<void>;
  /** Returns the stored keys, oldest first. */
  list(): readonly ApiKeyInfo[];
  /** Deletes a key by its id; returns false for an unknown id. */
  revoke(id: string): Promise<boolean>;
}

/** Options of {@link openApiKeys}. */
export interface ApiKeysOptions {
  /** Path of the key file. The first change creates it with mode 0600. */
  readonly file: string;
  /** Keys that are accepted as long as this process runs and are not stored, each with its person. */
  readonly unsaved?: ReadonlyMap<string, Person> | undefined;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Called when the changed file cannot be read, once for each version of the file. */
  readonly onUnreadable?: (error: unknown) => void;
}

const KEY_PATTERN = /^writ_([a-z0-9]{12})_[A-Za-z0-9_-]{43}$/;
const ID_ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** Poll interval for changes by other processes, ms. */
const POLL_INTERVAL_MS = 200;
const MAX_SUBJECT = 256;

/**
 * Opens an API key file. Keys created by another process are accepted at once; keys revoked by it are
 * rejected within 200 ms.
 * @throws InvalidRequestError INVALID_FILE naming the file and what to do
 */
export function openApiKeys(options: ApiKeysOptions): ApiKeys {
  const { file, unsaved, clock = systemClock, onUnreadable } = options;
  const unsavedRecords = Array.from(unsaved ?? [], ([key, person]) =>
    newRecord(key, person, clock.now()),
  );
  let stamp = fileStamp(file);
  let records = readApiKeyFile(file);
  let checkedAt = clock.monotonicMs();
  let reported: string | undefined;

  const reload = (atOnce = false): void => {
    const now = clock.monotonicMs();
    if (!atOnce && now - checkedAt < POLL_INTERVAL_MS) return;
    const newStamp = fileStamp(file);
    if (newStamp !== stamp) {
      try {
        records = readApiKeyFile(file);
      } catch (error) {
        if (newStamp !== reported) onUnreadable?.(error);
        reported = newStamp;
        // Without the file it is unknown which keys were revoked, so all keys are rejected (SYS-4).
        throw new UnavailableError(
          'API_KEYS_UNREADABLE',
          'The API keys cannot be read.',
          {},
          { cause: error },
        );
      }
      stamp = newStamp;
    }
    checkedAt = now;
  };

  const change = <T>(update: (stored: readonly ApiKeyRecord[]) => [readonly ApiKeyRecord[], T]) =>
    whileLocked(file, () => {
      const [after, result] = update(readApiKeyFile(file));
      writeApiKeyFile(file, after);
      records = after;
      stamp = fileStamp(file);
      return result;
    });

  const register = (key: string, person: Person): Promise<void> => {
    const record = newRecord(key, person, clock.now());
    return change((stored) => [
      stored.some(({ id, sha256 }) => id === record.id && sha256 === record.sha256)
        ? stored
        : [...stored.filter(({ id }) => id !== record.id), record],
      undefined,
    ]);
  };

  return {
    verify(key) {
      reload();
      const id = apiKeyId(key);
      const find = () => [...unsavedRecords, ...records].find((candidate) => candidate.id === id);
      if (find() === undefined) reload(true);
      const record = find();
      // The comparison takes as long for an unknown id as for a wrong secret.
      const expected = Buffer.from(record?.sha256 ?? '0'.repeat(64), 'hex');
      const same = timingSafeEqual(hash('sha256', key, 'buffer'), expected);
      return same && record !== undefined ? personOf(record) : undefined;
    },
    async create(person) {
      const key = newApiKey();
      await register(key, person);
      return key;
    },
    register,
    list() {
      reload();
      return records.map(({ sha256: _, ...info }) => info);
    },
    revoke: (id) =>
      change((stored) => {
        const after = stored.filter((record) => record.id !== id);
        return [after, after.length < stored.length];
      }),
  };
}

/** Returns the id of a key, its public part, as in `list` and `revoke`; undefined for a text that is not an API key. */
export function apiKeyId(key: string): string | undefined {
  return KEY_PATTERN.exec(key)?.[1];
}

/** Generates a key, `writ_<id>_<secret>`: the id has 60 random bits, the secret 256. */
export function newApiKey(): string {
  const id = Array.from(randomBytes(12), (byte) => ID_ALPHABET.charAt(byte & 31)).join('');
  return `writ_${id}_${randomBytes(32).toString('base64url')}`;
}

function newRecord(
  key: string,
  { subject, tenant, roles, agent }: Person,
  now: Date,
): ApiKeyRecord {
  const id = apiKeyId(key);
  if (id === undefined)
    throw new InvalidRequestError(
      'INVALID_API_KEY',
      'An API key must have the form writ_<id>_<secret>.',
      {
        field: 'key',
      },
    );
  if (subject === '' || subject.length > MAX_SUBJECT)
    throw new InvalidRequestError(
      'INVALID_SUBJECT',
      `subject must have 1 to ${MAX_SUBJECT} characters.`,
      { field: 'subject' },
    );
  if (roles.length === 0 || !roles.every(isRole))
    throw new InvalidRequestError('INVALID_ROLES', `roles must be some of ${ROLES.join(', ')}.`, {
      field: 'roles',
    });
  if (!isValidBinding(roles, agent))
    throw new InvalidRequestError(
      'INVALID_ROLES',
      'The role agent requires the name of one agent and cannot be combined with other roles; a key with other roles must not name an agent.',
      { field: 'agent' },
    );
  return {
    id,
    sha256: hash('sha256', key, 'hex'),
    subject,
    tenant: assertId(tenant, 'tenant'),
    roles: [...new Set<Role>(roles)],
    ...omitUndefined({ agent }),
    createTime: now,
  };
}

function personOf({ subject, tenant, roles, agent }: ApiKeyRecord): Person {
  return { subject, tenant, roles, ...omitUndefined({ agent }) };
}
