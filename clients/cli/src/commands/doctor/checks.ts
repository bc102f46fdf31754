import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join, resolve } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { omitUndefined } from '@writ/kernel';
import type { Finding } from '@writ/platform';
import { addressOf, authoritiesOf, openClient } from '../../client.ts';
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
  // The key and the address that writ dev writes are in the data folder of the project.
  const env = { ...io.env, WRIT_DATA: dataFolderOf(folder, io.env) };
  try {
    const address = addressOf(options, { env });
    const health = await askHealth(address, authoritiesOf(options, { env }));
    if (health.findings.length > 0 && health.name === 'platform') return [health];
    return [health, await checkKey(options, env)];
  } catch (error) {
    return [
      { name: 'platform', about: '', findings: [{ severity: 'error', text: explain(error) }] },
    ];
  }
}

/**
 * Checks that agent-proxy responds at WRIT_AGENT_PROXY_URL, the base URL that IssueRunToken returns with a token; returns
 * no result if the variable is not set. The check sends no token. agent-proxy rejects such a request with HTTP 401, so
 * this status shows that it responds.
 */
export async function checkAgentProxy({
  env,
}: Pick<CliIo, 'env'>): Promise<readonly CheckResult[]> {
  const url = env.WRIT_AGENT_PROXY_URL;
  if (url === undefined || url === '') return [];
  const name = 'agent-proxy';
  const failed = (text: string): readonly CheckResult[] => [
    { name, about: url, findings: [{ severity: 'error', text }] },
  ];
  let answer: Response;
  try {
    answer = await fetch(`${url.replace(/\/$/, '')}/models`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch {
    return failed(
      `agent-proxy does not answer at WRIT_AGENT_PROXY_URL=${url}. Start it, or correct the address.`,
    );
  }
  const { error } = (await answer.json().catch(() => ({}))) as {
    readonly error?: { readonly message?: string };
  };
  if (answer.status === 401)
    return [{ name, about: `agent-proxy answers at ${url}`, findings: [] }];
  return failed(
    `The server at WRIT_AGENT_PROXY_URL=${url} does not accept external agents (HTTP ${answer.status}): ${error?.message ?? 'it is not agent-proxy'}`,
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
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const text = `${found} cannot be written (${code}). Make it a folder that this user can write, or set WRIT_DATA to another folder.`;
    return { name: 'disk', about, findings: [{ severity: 'error', text }] };
  }
}

function dataFolderOf(folder: string, env: CliIo['env']): string {
  return env.WRIT_DATA ? resolve(env.WRIT_DATA) : join(resolve(folder), '.writ');
}

/**
 * Checks the health and the clock of the platform. The supervisor reports NOT_SERVING if its store fails or its clock
 * differs too much from those of its peers.
 */
async function askHealth(address: string, ca: string | undefined): Promise<CheckResult> {
  const finding = (severity: Finding['severity'], text: string): CheckResult => ({
    name: 'platform',
    about: address,
    findings: [{ severity, text }],
  });
  let answer: HealthAnswer;
  const asked = Date.now();
  try {
    answer = await post(`${address}/grpc.health.v1.Health/Check`, ca);
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
  return checkClock(address, answer, asked);
}

interface HealthAnswer {
  /** HTTP status. */
  readonly code: number | undefined;
  readonly date: string | undefined;
  readonly body: string;
}

/** Posts an empty JSON object. Unlike `fetch`, it accepts certificate authorities to trust, in `ca`. */
function post(url: string, ca: string | undefined): Promise<HealthAnswer> {
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  const options = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...omitUndefined({ ca }),
  };
  return new Promise((done, fail) => {
    request(url, options, (response) => {
      const { statusCode: code, headers } = response;
      textOf(response).then((body) => done({ code, date: headers.date, body }), fail);
    })
      .on('error', fail)
      .end('{}');
  });
}

function servingStatus(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { readonly status?: string }).status;
  } catch {
    return undefined;
  }
}

function checkClock(address: string, answer: HealthAnswer, asked: number): CheckResult {
  const date = Date.parse(answer.date ?? '');
  const offset = Number.isNaN(date) ? 0 : date - asked;
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
