import { readFileSync } from 'node:fs';
import pg from 'pg';
import type { MeasureAnswer } from '../writers/process.ts';
import type { WriteTimes } from './simulation.ts';

/** Clock ticks per second of the processor times in /proc. */
const TICKS = 100;

/** Flushes of the write-ahead log, and their time; PostgreSQL 18 moved them from pg_stat_wal to pg_stat_io. */
const FLUSHES = `
  SELECT sum(fsyncs) AS flushes, sum(fsync_time) AS flush_ms FROM pg_stat_io WHERE object = 'wal'`;
const FLUSHES_BEFORE_18 = 'SELECT wal_sync AS flushes, wal_sync_time AS flush_ms FROM pg_stat_wal';

/** Resources that the database server has used: processor time of its processes, and flushes of its log. */
export interface ServerUse {
  readonly processorMs: number;
  readonly flushes: number;
  readonly flushMs: number;
}

/** Reads the resources that a server has used; the server must run with `track_wal_io_timing`. */
export async function serverUse(url: string): Promise<ServerUse> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: processes } = await client.query<{ pid: number }>(
      'SELECT pid FROM pg_stat_activity WHERE pid != pg_backend_pid()',
    );
    const { rows: versions } = await client.query<{ server_version_num: string }>(
      'SHOW server_version_num',
    );
    const { rows } = await client.query<{ flushes: string; flush_ms: number }>(
      Number(versions[0]?.server_version_num) < 180_000 ? FLUSHES_BEFORE_18 : FLUSHES,
    );
    const ticks = processes.reduce((sum, { pid }) => sum + processorTicks(pid), 0);
    return {
      processorMs: (ticks * 1_000) / TICKS,
      flushes: Number(rows[0]?.flushes),
      flushMs: Number(rows[0]?.flush_ms),
    };
  } finally {
    await client.end();
  }
}

function processorTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** A measurement of writers, and the resources that the server used. */
export interface MeasuredUse {
  readonly writing: Pick<MeasureAnswer, 'transactions' | 'commits' | 'processorMs'>;
  readonly server: ServerUse;
}

/**
 * Computes the times of a transaction and of a commit by solving two equations, one for each measurement: a single
 * writer commits each transaction separately, and many writers share commits.
 */
export function writeTimes(alone: MeasuredUse, many: MeasuredUse): WriteTimes {
  return {
    process: divided(alone, many, ({ writing }) => writing.processorMs),
    server: divided(alone, many, ({ server }) => server.processorMs),
    flush: alone.server.flushMs / alone.server.flushes,
  };
}

function divided(alone: MeasuredUse, many: MeasuredUse, used: (use: MeasuredUse) => number) {
  const each = (use: MeasuredUse) => used(use) / use.writing.transactions;
  const commits = ({ writing }: MeasuredUse) => writing.commits / writing.transactions;
  const perCommit = Math.max(0, (each(alone) - each(many)) / (commits(alone) - commits(many)));
  return { perCommit, perTransaction: Math.max(0, each(many) - perCommit * commits(many)) };
}
