import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { useEffect, useState } from 'react';
import { follow } from '../../api/follow.ts';
import { useApi, useSession } from '../../session/session-provider.tsx';
import { EMPTY_RUN, type RunModel, withEvents } from './timeline.ts';

/**
 * Interval at which received events are rendered together, so that a run with thousands of events causes few updates.
 */
const BATCH_MS = 120;
/** Minimum interval at which the run, its balances and its slots are read again after events. */
const REFRESH_MS = 1_000;

/** A run with its live timeline. */
export interface LiveRun {
  readonly model: RunModel;
  /** Whether the stream is connected, or has delivered the end of the run. */
  readonly isLive: boolean;
  readonly error: unknown;
}

/** Follows the timeline of a run. */
export function useLiveRun(runId: string): LiveRun {
  const api = useApi();
  const queries = useQueryClient();
  const [model, setModel] = useState<RunModel>(EMPTY_RUN);
  const [isLive, setLive] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let held: RunEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let refresh: ReturnType<typeof setTimeout> | undefined;
    let current = EMPTY_RUN;
    let last = 0n;
    let isEnded = false;
    setModel(EMPTY_RUN);
    setError(undefined);
    const show = (): void => {
      timer = undefined;
      const events = held;
      held = [];
      current = withEvents(current, events);
      setModel(current);
      refresh ??= setTimeout(() => {
        refresh = undefined;
        void queries.invalidateQueries({ queryKey: ['run', runId] });
      }, REFRESH_MS);
    };
    const stop = follow({
      open: (signal) =>
        api.runs.watchRun({ runId, afterSequence: last, progress: true }, { signal }),
      onMessage: ({ event }) => {
        if (event === undefined) return;
        if (event.sequence > last) last = event.sequence;
        if (event.entry.case === 'result') isEnded = true;
        if (event.entry.case === 'heartbeat') return;
        held.push(event);
        timer ??= setTimeout(show, BATCH_MS);
      },
      onConnected: (connected) => setLive(connected || isEnded),
      onError: setError,
      isDone: () => isEnded,
    });
    return () => {
      stop();
      clearTimeout(timer);
      clearTimeout(refresh);
    };
  }, [api, queries, runId]);
  return { model, isLive, error };
}

/** Reads the run with GetRun. */
export function useRun(runId: string) {
  const api = useApi();
  return useQuery({
    queryKey: ['run', runId, 'run'],
    queryFn: async ({ signal }) => (await api.runs.getRun({ runId }, { signal })).run ?? null,
  });
}

/** Reads the slots of a run. Before the run has started, the query fails with POOL_NOT_FOUND. */
export function useRunPool(runId: string) {
  const { api, can } = useSession();
  return useQuery({
    queryKey: ['run', runId, 'pool'],
    enabled: can('writ.usage.v1.UsageService/GetPool'),
    queryFn: async ({ signal }) => (await api.usage.getPool({ runId }, { signal })).pool ?? null,
    retry: false,
  });
}

/** The balances of the root agent, the run, the session and the tenant. */
export function useRunUsage(runId: string) {
  const { api, can } = useSession();
  return useQuery({
    queryKey: ['run', runId, 'usage'],
    enabled: can('writ.usage.v1.UsageService/GetRunUsage'),
    queryFn: async ({ signal }) => (await api.usage.getRunUsage({ runId }, { signal })).tab ?? null,
    retry: false,
  });
}
