import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@writ/testing/distributed';
import { COMPILE_CACHE } from '../../load/program.ts';
import type { PeerEntry } from './catalog.ts';
import type { PeerRequest, PeerSpeed } from './serve-peer.ts';

/** A started peer, in a process of its own. */
export interface Peer {
  /** Measures runs, `inFlight` at once. */
  measure(inFlight: number, forMs: number): Promise<PeerSpeed>;
  /** Executes `runs` runs one after the other. */
  run(runs: number): Promise<void>;
  close(): Promise<void>;
}

/** The dependencies of the peer programs. */
export interface PeerSurroundings {
  /** Folder whose node_modules has the packages. */
  readonly packages: string;
  /** `host:port` of the model. */
  readonly modelAddress: string;
  /** Creates an empty database and returns its URL. */
  readonly createDatabase: (name: string) => Promise<string>;
}

const RESOLVE = new URL('resolve-packages.mjs', import.meta.url).href;

/**
 * Starts the program of a peer; resolves when it accepts requests.
 * @throws Error with the last output of the program on standard error, when the program exits or reports an error first
 */
export async function startPeer(
  entry: PeerEntry,
  { packages, modelAddress, createDatabase }: PeerSurroundings,
): Promise<Peer> {
  const folder = await mkdtemp(join(tmpdir(), `writ-peer-${entry.id}-`));
  const [port = 0] = await freePorts(1);
  const database = entry.needsPostgres === true ? await createDatabase(entry.id) : undefined;
  const child = fork(fileURLToPath(new URL(entry.program, import.meta.url)), {
    execArgv: ['--import', RESOLVE],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      NODE_ENV: 'production',
      PEER_FOLDER: folder,
      PEER_MODEL_URL: `http://${modelAddress}/${entry.id}/v1`,
      PEER_PACKAGES: packages,
      PEER_PORT: String(port),
      ...(database !== undefined && { PEER_POSTGRES_URL: database }),
      ...entry.env,
    },
  });
  let log = '';
  child.stderr?.on('data', (part: Buffer) => {
    log = (log + part.toString('utf8')).slice(-4_000);
  });
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const exited = async (): Promise<never> => {
    const code = await ended;
    throw new Error(`${entry.name} exited with ${code}:\n${log}`);
  };
  const ask = async (request?: PeerRequest): Promise<object> => {
    const answered = once(child, 'message');
    if (request !== undefined) child.send(request);
    const [answer] = (await Promise.race([answered, exited()])) as [object];
    if ('error' in answer) throw new Error(`${entry.name}: ${answer.error}\n${log}`);
    return answer;
  };
  const close = async (): Promise<void> => {
    if (child.connected) child.disconnect();
    await ended;
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    await ask();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    measure: async (inFlight, forMs) => (await ask({ inFlight, forMs })) as PeerSpeed,
    run: async (runs) => void (await ask({ runs })),
    close,
  };
}
