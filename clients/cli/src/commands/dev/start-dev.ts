import { fileURLToPath } from 'node:url';
import { omitUndefined } from '@writ/kernel';
import { loadProject } from '@writ/platform';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { runDev } from './run-dev.ts';
import { servePlatform } from './serve-platform.ts';

/** Options of `writ dev`. */
export interface DevOptions {
  readonly port?: string;
  readonly data?: string;
  readonly process?: string;
}

/** Runs `writ dev`. With the hidden option `--process platform`, this process is the child that runs the platform. */
export async function startDev(folder: string, options: DevOptions, io: CliIo): Promise<Exit> {
  const env = {
    ...io.env,
    ...omitUndefined({ WRIT_EDGE_PORT: options.port, WRIT_DATA: options.data }),
  };
  if (options.process === 'platform') {
    await servePlatform(folder, { ...io, env });
    return EXIT.success;
  }
  // Rejects an invalid project before a child process is started.
  loadProject(folder);
  return await runDev({ folder, env, main: mainModule() }, io);
}

/**
 * Returns the path of the entry point of `writ`. The path relative to this file is the same in the sources and in the
 * package.
 */
function mainModule(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`../../main.${extension}`, import.meta.url));
}
