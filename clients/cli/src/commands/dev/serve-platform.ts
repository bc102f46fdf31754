import { appendFileSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { createWritClient } from '@writ/client';
import { InvalidRequestError } from '@writ/kernel';
import {
  checkProject,
  documentsOf,
  type Finding,
  hasConsole,
  loadProject,
  type ModelSource,
  type OpenProject,
  openProject,
  type Project,
} from '@writ/platform';
import { createDataFolder } from '@writ/service';
import { codeOf, DEV_ADDRESS_FILE } from '../../client.ts';
import { explain } from '../../explain.ts';
import type { CliIo } from '../../io.ts';
import { shellWord } from '../../output/shell.ts';

/** A message from the platform process to `writ dev`. The only message in the other direction is `start`. */
export type FromPlatform =
  | { readonly kind: 'ready'; readonly findings: readonly Finding[] }
  | { readonly kind: 'invalid'; readonly findings: readonly Finding[] }
  | { readonly kind: 'up'; readonly lines: readonly string[] }
  | { readonly kind: 'failed'; readonly problem: string };

/**
 * Runs the platform process of one version of a project: loads and checks the files and modules, waits for the message
 * `start`, which the parent sends after it has stopped the previous process, and serves the checked files. A version
 * with errors does not replace the previous one. Returns if the version is invalid or fails to start, and when the
 * parent exits or sends SIGTERM.
 */
export async function servePlatform(
  folder: string,
  { env, warn }: Pick<CliIo, 'env' | 'warn'>,
): Promise<void> {
  // Ctrl-C sends SIGINT to the whole process group; this process ignores it, because the parent stops it with SIGTERM.
  process.on('SIGINT', () => undefined);
  // When the terminal closes, the parent ends, and this process stops because it is disconnected.
  process.on('SIGHUP', () => undefined);
  // The platform continues if the output of its tools cannot be written.
  for (const stream of [process.stdout, process.stderr]) {
    stream.removeAllListeners('error').on('error', () => undefined);
  }
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.once('disconnect', () => stop.abort());
  const stopped = new Promise<'stopped'>((resolve) => {
    stop.signal.addEventListener('abort', () => resolve('stopped'), { once: true });
  });
  const starting = new Promise<void>((resolve) => {
    process.once('message', () => resolve());
  });
  let open: OpenProject | undefined;
  try {
    const project = loadProject(folder);
    const documents = documentsOf(project);
    const findings = await checkProject(project, env);
    const isInvalid = findings.some(({ severity }) => severity === 'error');
    await sendToParent({ kind: isInvalid ? 'invalid' : 'ready', findings });
    if (isInvalid || (await Promise.race([starting, stopped])) === 'stopped') return;
    const dataDir = env.WRIT_DATA || join(project.folder, '.writ');
    createDataFolder(dataDir);
    const logStream = openLog(join(dataDir, 'dev.log'), warn);
    open = await openProject(project, { env, documents, dataDir, logStream });
    writeFileSync(join(dataDir, DEV_ADDRESS_FILE), `${open.platform.edgeUrl}\n`);
    await sendToParent({ kind: 'up', lines: await linesOf(project, open) });
    await stopped;
  } catch (error) {
    await sendToParent({ kind: 'failed', problem: explain(error) });
  } finally {
    if (open !== undefined) {
      await open.close();
      rmSync(join(open.dataDir, DEV_ADDRESS_FILE), { force: true });
    }
    if (process.connected) process.disconnect();
  }
}

/**
 * Opens the log, which the platform appends to. The platform continues if a line cannot be written, such as to a full
 * disk; only the first failure is reported.
 * @throws InvalidRequestError INVALID_FILE if the file cannot be opened
 */
function openLog(file: string, warn: CliIo['warn']): { write(line: string): void } {
  let handle: number;
  try {
    handle = openSync(file, 'a');
  } catch (error) {
    throw new InvalidRequestError(
      'INVALID_FILE',
      `The log ${file} cannot be opened (${codeOf(error)}); make it a file that this user can write, or set WRIT_DATA to another folder.`,
      { file },
      { cause: error },
    );
  }
  let isReported = false;
  return {
    write: (line) => {
      try {
        appendFileSync(handle, line);
      } catch (error) {
        if (isReported) return;
        isReported = true;
        warn(`The log ${file} cannot be written (${codeOf(error)}).`);
      }
    },
  };
}

async function linesOf(project: Project, { platform, model, dataDir }: OpenProject) {
  const { edgeUrl, apiKey } = platform;
  const client = createWritClient({ baseUrl: edgeUrl, apiKey });
  const { agents } = await client.runs.listAgents({ pageSize: 500 });
  const data = relative('', dataDir) || '.';
  const folder = relative('', project.folder);
  const place = folder === '' ? 'this folder' : shellWord(folder);
  // Without WRIT_DATA, commands use .writ in their working directory.
  const isOwnData = resolve(dataDir) === join(project.folder, '.writ');
  return [
    `Writ is up: project ${project.name}, data in ${data}, log in ${join(data, 'dev.log')}.`,
    `model     ${modelText(model, project)}`,
    `public    ${edgeUrl}   gRPC, gRPC-Web and JSON`,
    ...((await hasConsole(edgeUrl)) ? [`console   ${edgeUrl}/   in a browser`] : []),
    `API key   in ${join(data, 'dev-api-key')}, for development only; writ finds it ${isOwnData ? `in ${place}` : 'with WRIT_DATA'}`,
    `agents    ${agents.map(({ name }) => name).join(', ') || 'none'}`,
    '',
    `In a second terminal, in ${place}:`,
    ...(isOwnData ? [] : [`  export WRIT_DATA=${shellWord(resolve(dataDir))}`]),
    `  npx writ run ${agents[0]?.name ?? 'AGENT'} "What the agent should do."`,
    '  npx writ approvals list',
  ];
}

function modelText(
  { simulated, description, providerModels = [] }: ModelSource,
  { script }: Project,
): string {
  if (!simulated) return description;
  const others = providerModels.length === 0 ? '' : `; not simulated: ${providerModels.join(', ')}`;
  return `simulated by simulator/${script}.yaml, because OPENAI_API_KEY is not set${others}`;
}

async function sendToParent(message: FromPlatform): Promise<void> {
  await new Promise<void>((resolve) => {
    if (process.send === undefined) resolve();
    else process.send(message, () => resolve());
  });
}
