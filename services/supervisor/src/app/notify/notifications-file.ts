import { readFileSync } from 'node:fs';
import { ConfigError, loadYaml, WatchedFile, type YamlInput } from '@writ/config';
import type { EgressAllowance } from '@writ/service';
import type { Logger } from '@writ/telemetry';
import { NOTIFIED, type Notified } from '../../domain/notify/notification.ts';
import { parseWebhookSecret } from '../../domain/notify/sign.ts';
import { NOTIFICATIONS_SCHEMA } from './notifications-schema.ts';

/** An endpoint of the notifications file. */
export interface Endpoint {
  readonly name: string;
  readonly url: string;
  readonly key: Buffer | undefined;
  readonly format: 'standard' | 'slack';
  readonly events: readonly Notified[];
  /** Undefined = all. */
  readonly thresholds: readonly number[] | undefined;
}

/** A notifications file. */
export interface Notifications {
  /** Empty = no links. */
  readonly consoleUrl: string;
  readonly allowance: EgressAllowance;
  /** By tenant, or `*`. */
  readonly endpoints: ReadonlyMap<string, readonly Endpoint[]>;
}

/** Values of environment variables. */
type Variables = Readonly<Record<string, string | undefined>>;

interface EndpointYaml {
  readonly name: string;
  readonly url?: string;
  readonly url_env?: string;
  readonly secret_env?: string;
  readonly secret_file?: string;
  readonly format?: 'standard' | 'slack';
  readonly events?: readonly Notified[];
  readonly budget_thresholds?: readonly number[];
}

interface NotificationsYaml {
  readonly console_url?: string;
  readonly allowed_hosts?: readonly string[];
  readonly tenants: Readonly<Record<string, readonly EndpointYaml[]>>;
}

const NONE: Notifications = {
  consoleUrl: '',
  allowance: { hosts: [], ports: [] },
  endpoints: new Map(),
};

/**
 * The notifications file, reloaded when it changes. At the start a file with an error is rejected with ConfigError; a
 * reload with an error is logged, and the previous file stays in effect.
 */
export class NotificationsFile {
  readonly #file: WatchedFile | undefined;
  readonly #variables: Variables;
  readonly #log: Logger;
  #current: Notifications = NONE;

  private constructor(file: WatchedFile | undefined, variables: Variables, log: Logger) {
    this.#file = file;
    this.#variables = variables;
    this.#log = log;
  }

  /**
   * @param input undefined = no notifications
   * @throws ConfigError with file, line and the expected value
   */
  static async open(
    input: YamlInput | undefined,
    variables: Variables,
    log: Logger,
  ): Promise<NotificationsFile> {
    const file = input === undefined ? undefined : new WatchedFile(input);
    const opened = new NotificationsFile(file, variables, log);
    if (file !== undefined) opened.#current = loadNotifications(await file.read(), variables);
    return opened;
  }

  get current(): Notifications {
    return this.#current;
  }

  /** Reloads the file if it changed. */
  async look(): Promise<void> {
    try {
      const changed = await this.#file?.changed();
      if (changed === undefined) return;
      this.#current = loadNotifications(changed, this.#variables);
      this.#log.info('notifications file reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#log.error({ err: error }, 'notifications file is invalid; keeping the previous one');
    }
  }
}

/**
 * Reads a notifications file.
 * @throws ConfigError listing every problem as `file:line:column: what was expected`
 */
export function loadNotifications(input: YamlInput, variables: Variables): Notifications {
  const file = typeof input === 'string' ? input : input.file;
  const { value, locate } = loadYaml<NotificationsYaml>(input, NOTIFICATIONS_SCHEMA);
  const problems: string[] = [];
  const endpoints = new Map<string, readonly Endpoint[]>();
  for (const [tenant, list] of Object.entries(value.tenants)) {
    const names = new Set<string>();
    const read = list.map((yaml, index) => {
      const report = (sentence: string) =>
        void problems.push(
          `${locate(['tenants', tenant, index])}: endpoint "${yaml.name}" ${sentence}`,
        );
      if (names.has(yaml.name)) report('is defined twice; names must be unique.');
      names.add(yaml.name);
      return endpointOf(yaml, variables, report);
    });
    endpoints.set(tenant, read);
  }
  if (problems.length > 0) throw new ConfigError(file, problems);
  const { console_url: consoleUrl = '', allowed_hosts: hosts = [] } = value;
  return { consoleUrl, allowance: { hosts, ports: [] }, endpoints };
}

function endpointOf(
  yaml: EndpointYaml,
  variables: Variables,
  report: (sentence: string) => void,
): Endpoint {
  const { format = 'standard', events = NOTIFIED } = yaml;
  const url = yaml.url ?? (yaml.url_env === undefined ? undefined : variables[yaml.url_env]);
  if ((yaml.url === undefined) === (yaml.url_env === undefined))
    report('requires exactly one of url and url_env.');
  else if (url === undefined || url === '') report(`requires ${yaml.url_env}, which is not set.`);
  const key = keyOf(yaml, variables, report);
  const thresholds = yaml.budget_thresholds;
  return { name: yaml.name, url: url ?? '', key, format, events, thresholds };
}

/**
 * Returns the signing key of an endpoint; undefined if it has none or the key is invalid. Reports at most one problem.
 */
function keyOf(
  { secret_env, secret_file, format = 'standard' }: EndpointYaml,
  variables: Variables,
  report: (sentence: string) => void,
): Buffer | undefined {
  if (secret_env !== undefined && secret_file !== undefined) {
    report('requires at most one of secret_env and secret_file.');
    return undefined;
  }
  let secret: string;
  if (secret_file !== undefined) {
    try {
      secret = readFileSync(secret_file, 'utf8');
    } catch {
      report(`requires ${secret_file}, which cannot be read.`);
      return undefined;
    }
  } else if (secret_env !== undefined) {
    secret = variables[secret_env] ?? '';
  } else {
    if (format === 'standard')
      report('requires secret_env or secret_file, because format standard is signed.');
    return undefined;
  }
  const key = parseWebhookSecret(secret);
  if (key === undefined)
    report(
      'has an invalid secret in secret_env or secret_file: it must be whsec_ and 24 to 64 bytes in Base64.',
    );
  return key;
}
