import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { type Program, SERVICE_MAINS, startProgram } from '../load/program.ts';
import { contest } from './contest.ts';
import type { Operation } from './measure.ts';

/** Who the measured service serves. */
export interface Subject {
  readonly service: 'spawn-budget' | 'execution-meter';
  /** What one operation is called: two RPCs, one after the other, of one commit each. */
  readonly name: string;
  /** Variables beside the usual ones. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Prepares the service, and gives the operation.
   * @param prefix of the ids of its requests
   */
  prepare(supervisor: KeyPeer, address: string, prefix: string): Promise<Operation>;
}

/** How the bench is run. */
export interface BenchOptions {
  /** Folder for CPU profiles of the servers; none are made without it. */
  readonly profileDir?: string | undefined;
}

const ECHOES = 'the same, echoed';
const TWICE = 'echoed + commits';
/** Of the operations/s of two echoes plus two commits. */
const WANTED = 0.6;

/**
 * Measures a service beside the floor that it stands on, each in a process of its own: the same two
 * RPCs with a handler that does nothing, and with one that commits one row. Prints the figures and
 * whether the service reaches its part of the floor; resolves with that.
 */
export async function bench(subject: Subject, { profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    const dir = await mkdtemp(join(tmpdir(), 'writ-bench-'));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
    const start = async (file: string, env: Readonly<Record<string, string>>): Promise<Program> => {
      const program = await startProgram(file, env, flags);
      stack.defer(() => program.stop());
      return program;
    };
    const supervisor = await startKeyPeer('supervisor');
    stack.defer(() => supervisor.close());
    const echo = await start(fileURLToPath(new URL('same-rpc-server.ts', import.meta.url)), {
      ECHO_FILE: join(dir, 'echo.db'),
      ECHO_SERVICE: subject.service,
      WRIT_SUPERVISOR_ADDRESS: supervisor.address,
    });
    const service = await start(SERVICE_MAINS[subject.service], {
      WRIT_DATA: dir,
      WRIT_EXECUTION_METER_PORT: '0',
      WRIT_SPAWN_BUDGET_PORT: '0',
      WRIT_SUPERVISOR_ADDRESS: supervisor.address,
      WRIT_LOG_LEVEL: 'warn',
      ...subject.env,
    });
    const entrants = {
      [ECHOES]: await subject.prepare(supervisor, echo.address, 'echo-'),
      [TWICE]: await subject.prepare(supervisor, echo.address, 'commit-'),
      [subject.name]: await subject.prepare(supervisor, service.address, ''),
    };
    const results = await contest(entrants, {
      [ECHOES]: echo,
      [TWICE]: echo,
      [subject.name]: service,
    });
    return verdict(subject.name, results.ratio(subject.name, TWICE, 64));
  } finally {
    await stack.disposeAsync();
  }
}

function verdict(name: string, ratio: number): boolean {
  const isEnough = ratio >= WANTED;
  const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: ${name} reaches ${percent(ratio)} of two echoes plus two commits at 64 in flight; wanted are ${percent(WANTED)}.`,
  );
  return isEnough;
}
