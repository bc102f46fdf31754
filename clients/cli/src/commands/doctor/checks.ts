import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join, resolve } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { getCACertificates } from 'node:tls';
import { omitUndefined } from '@writ/kernel';
import type { Finding } from '@writ/platform';
import { addressOf, authoritiesOf, codeOf, openClient, readAuthorities } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { explain } from '../../explain.ts';
import type { CliIo } from '../../io.ts';

/** The result of one check of `writ doctor`; a check without findings has passed. */
export interface CheckResult {
  readonly name: string;
  /** What the check found, printed when it has passed. */
  readonly about: string;
  readonly findings: readonly Finding[];
}

/** The default clock difference that services tolerate when they verify tokens, see docs/operations/clocks.md. */
const CLOCK_LEEWAY_MS = 60_000;
const LOW_DISK_BYTES = 500 * 1024 * 1024;
const TIMEOUT_MS = 10_000;

/**
 * Checks that the platform responds, reports SERVING, accepts the API key, and that its clock agrees with that of this
 * machine.
 */
export async function checkPlatform(
  folder: string,
  options: ClientOptions,
  io: CliIo,
): Promise<readonly CheckResult[]> {
  const env = environmentOf(folder, io);
  try {
    const address = addressOf(options, { env });
    const health = await checkHealth(address, authoritiesOf(options, { env }));
    if (health.findings.length > 0 && health.name === 'platform') return [health];
    return [health, await checkKey(options, env)];
  } catch (error) {
    return [
      { name: 'platform', about: '', findings: [{ severity: 'error', text: explain(error) }] },
    ];
  }
}

/**
 * Checks that agent-proxy responds at WRIT_AGENT_PROXY_URL, the base URL that IssueRunToken returns with a token.
 * Returns no result if the variable is not set. The check sends no token. agent-proxy rejects such a request with HTTP
 * 401, so this status shows that agent-proxy responds.
 */
export async function checkAgentProxy(
  options: ClientOptions,
  io: Pick<CliIo, 'env'>,
): Promise<readonly CheckResult[]> {
  const url = io.env.WRIT_AGENT_PROXY_URL;
  if (url === undefined || url === '') return [];
  const name = 'agent-proxy';
  const failed = (text: string): readonly CheckResult[] => [
    { name, about: url, findings: [{ severity: 'error', text }] },
  ];
  let ca: string | undefined;
  try {
    if (url.startsWith('https:')) ca = readAuthorities(options, io);
  } catch (error) {
    return failed(explain(error));
  }
  let answer: HttpAnswer;
  try {
    // agent-proxy may have a certificate of another authority than the platform.
    const authorities = ca && [...getCACertificates('default'), ca];
    answer = await send('GET', `${url.replace(/\/$/, '')}/models`, authorities);
  } catch (error) {
    const code = codeOf(error);
    return failed(
      isCertificateError(code)
        ? `The certificate of WRIT_AGENT_PROXY_URL=${url} is rejected (${code}). ${certificateAdvice(code)}`
        : `agent-proxy does not answer at WRIT_AGENT_PROXY_URL=${url} (${code}). Start it, or correct the address.`,
    );
  }
  if (answer.code === 401) return [{ name, about: `agent-proxy answers at ${url}`, findings: [] }];
  return failed(
    `The server at WRIT_AGENT_PROXY_URL=${url} does not accept external agents (HTTP ${answer.code}): ${messageOf(answer.body) ?? 'it is not agent-proxy'}`,
  );
}

/**
 * Checks that the data folder, or the project folder if no data folder exists yet, is writable and that its disk has
 * enough free space.
 */
export function checkDisk(folder: string, { env }: Pick<CliIo, 'env'>): CheckResult {
  const data = dataFolderOf(folder, env);
  const found = existsSync(data) ? data : resolve(folder);
  const about = `${found} can be written`;
  try {
    // Fails if the path is a file and not a folder.
    accessSync(`${found}/.`, constants.W_OK);
    const { bavail, bsize } = statfsSync(found);
    const free = bavail * bsize;
    const findings: Finding[] =
      free < LOW_DISK_BYTES
        ? [
            {
              severity: 'warning',
              text: `${found} has only ${Math.floor(free / 1024 / 1024)} MiB left.`,
            },
          ]
        : [];
    return { name: 'disk', about, findings };
  } catch (error) {
    const text = `${found} cannot be written (${codeOf(error)}). Make it a folder that this user can write, or set WRIT_DATA to another folder.`;
    return { name: 'disk', about, findings: [{ severity: 'error', text }] };
  }
}

/** Returns the environment in which commands find the key and the address that `writ dev` writes for the project. */
function environmentOf(folder: string, { env }: Pick<CliIo, 'env'>): CliIo['env'] {
  return { ...env, WRIT_DATA: dataFolderOf(folder, env) };
}

function dataFolderOf(folder: string, env: CliIo['env']): string {
  return env.WRIT_DATA ? resolve(env.WRIT_DATA) : join(resolve(folder), '.writ');
}

/**
 * Checks the health and the clock of the platform. The supervisor reports NOT_SERVING if its store fails or its clock
 * differs too much from those of its peers.
 */
async function checkHealth(address: string, ca: string | undefined): Promise<CheckResult> {
  const finding = (severity: Finding['severity'], text: string): CheckResult => ({
    name: 'platform',
    about: address,
    findings: [{ severity, text }],
  });
  let answer: HttpAnswer;
  const sentAt = Date.now();
  try {
    answer = await send('POST', `${address}/grpc.health.v1.Health/Check`, ca);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return finding(
      'warning',
      `No platform answers at ${address}${code}. Start it with writ dev, or set --address or WRIT_ADDRESS.`,
    );
  }
  const status = servingStatus(answer.body);
  if (status === undefined)
    return finding(
      'error',
      `The server at ${address} is not a Writ platform (HTTP ${answer.code}).`,
    );
  if (status !== 'SERVING')
    return finding('error', `The platform at ${address} reports ${status}: read its log.`);
  return checkClock(address, answer, sentAt);
}

interface HttpAnswer {
  /** HTTP status. */
  readonly code: number | undefined;
  readonly date: string | undefined;
  readonly body: string;
}

/** Sends a GET, or a POST with an empty JSON object. Unlike `fetch`, it can trust the authorities in `ca`. */
function send(
  method: 'GET' | 'POST',
  url: string,
  ca: string | string[] | undefined,
): Promise<HttpAnswer> {
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  const options = {
    method,
    ...(method === 'POST' && { headers: { 'content-type': 'application/json' } }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...omitUndefined({ ca }),
  };
  return new Promise((done, fail) => {
    request(url, options, (response) => {
      const { statusCode: code, headers } = response;
      textOf(response).then((body) => done({ code, date: headers.date, body }), fail);
    })
      .on('error', fail)
      .end(method === 'POST' ? '{}' : undefined);
  });
}

/** Returns whether the error is a rejected server certificate, such as UNABLE_TO_VERIFY_LEAF_SIGNATURE. */
function isCertificateError(code: string): boolean {
  return /^(?!ERR_SSL_).*(CERT|_SIGNATURE)/.test(code);
}

/** Returns how to fix a rejected certificate. Trusting its authority does not help if the certificate is invalid. */
function certificateAdvice(code: string): string {
  if (/EXPIRED|NOT_YET_VALID/.test(code)) return 'Replace the certificate.';
  if (code.includes('ALTNAME')) return 'Replace the certificate, or correct the address.';
  return 'Trust its authority with --ca-file, WRIT_CA_FILE or NODE_EXTRA_CA_CERTS, or replace the certificate.';
}

/** Returns the message of an error in the format of the model endpoint; undefined for another body. */
function messageOf(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { readonly error?: { readonly message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}

function servingStatus(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { readonly status?: string }).status;
  } catch {
    return undefined;
  }
}

function checkClock(address: string, answer: HttpAnswer, sentAt: number): CheckResult {
  const date = Date.parse(answer.date ?? '');
  const offset = Number.isNaN(date) ? 0 : date - sentAt;
  const isFar = Math.abs(offset) > CLOCK_LEEWAY_MS;
  const text = `The clock of the platform at ${address} differs from that of this machine by ${Math.round(offset / 1000)} s. Synchronize both with NTP.`;
  return {
    name: 'clock',
    about: `${address} is serving, and its clock agrees with this machine`,
    findings: isFar ? [{ severity: 'error', text }] : [],
  };
}

async function checkKey(options: ClientOptions, env: CliIo['env']): Promise<CheckResult> {
  try {
    const { agents } = await openClient(options, { env }).runs.listAgents({ pageSize: 1 });
    const about =
      agents.length > 0
        ? 'the API key is accepted'
        : 'the API key is accepted; no agent is defined';
    return { name: 'key', about, findings: [] };
  } catch (error) {
    return { name: 'key', about: '', findings: [{ severity: 'error', text: explain(error) }] };
  }
}
