import {
  type InfiniteData,
  type QueryClient,
  useInfiniteQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { wordsOf } from '@writ/client/display';
import { type Run, RunState, RunStateSchema } from '@writ/contracts/writ/run/v1/run_pb';
import type { ListRunsResponse } from '@writ/contracts/writ/run/v1/run_service_pb';
import { useEffect, useState } from 'react';
import { useSearchParams } from 'react-router';
import { follow } from '../../api/follow.ts';
import { useApi } from '../../session/session-provider.tsx';
import { changedPages } from './changed-pages.ts';

const PAGE_SIZE = 200;
/** How long changes are collected before the list shows them, ms. */
const BATCH_MS = 200;
/** The run states by their display names. */
export const STATES: ReadonlyMap<string, RunState> = new Map(
  RunStateSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ number }) => [wordsOf(RunState, number), number as RunState]),
);

/** The filter of the run list. */
export interface RunFilter {
  readonly states: readonly string[];
  readonly agent: string;
  readonly session: string;
}

/** Returns the filter and its setter. The filter is part of the URL, so that it can be shared and survives a reload. */
export function useRunFilter(): readonly [RunFilter, (filter: RunFilter) => void] {
  const [params, setParams] = useSearchParams();
  const filter: RunFilter = {
    states: params.getAll('state'),
    agent: params.get('agent') ?? '',
    session: params.get('session') ?? '',
  };
  const setFilter = ({ states, agent, session }: RunFilter): void => {
    const next = new URLSearchParams(states.map((state) => ['state', state]));
    if (agent !== '') next.set('agent', agent);
    if (session !== '') next.set('session', session);
    setParams(next, { replace: true });
  };
  return [filter, setFilter];
}

/** The pages of ListRuns for a filter. */
export function useRuns(filter: RunFilter) {
  const api = useApi();
  return useInfiniteQuery({
    queryKey: keyOf(filter),
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api.runs.listRuns(
        {
          states: statesOf(filter),
          agent: filter.agent.trim(),
          sessionId: filter.session.trim(),
          pageSize: PAGE_SIZE,
          pageToken: pageParam,
        },
        { signal },
      ),
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
}

/** The stream of changes of runs. */
export interface LiveRuns {
  /** Whether the stream is connected. */
  readonly isLive: boolean;
  /** An error that ended the stream, or that persists across reconnections. */
  readonly error: unknown;
}

/** Follows WatchRuns and applies the changes to the pages of a filter; returns the state of the stream. */
export function useLiveRuns(filter: RunFilter): LiveRuns {
  const api = useApi();
  const queries = useQueryClient();
  const [isLive, setLive] = useState(false);
  const [error, setError] = useState<unknown>();
  const { agent, session } = filter;
  const states = filter.states.join();
  useEffect(() => {
    const shown = { states: states === '' ? [] : states.split(','), agent, session };
    let held: Run[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFirst = true;
    setError(undefined);
    const show = (): void => {
      timer = undefined;
      const runs = held;
      held = [];
      applyChanges(queries, shown, runs);
    };
    const stop = follow({
      open: (signal) => {
        isFirst = true;
        return api.runs.watchRuns({}, { signal });
      },
      onMessage: ({ run }) => {
        // A new stream does not send earlier changes, so the pages are read again.
        if (isFirst) void queries.invalidateQueries({ queryKey: keyOf(shown) });
        isFirst = false;
        if (run === undefined) return;
        held.push(run);
        timer ??= setTimeout(show, BATCH_MS);
      },
      onConnected: setLive,
      onError: setError,
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [api, queries, states, agent, session]);
  return { isLive, error };
}

function applyChanges(queries: QueryClient, filter: RunFilter, runs: readonly Run[]): void {
  const accepts = (run: Run): boolean =>
    (filter.states.length === 0 || statesOf(filter).includes(run.state)) &&
    (filter.agent.trim() === '' || run.agent?.name === filter.agent.trim()) &&
    (filter.session.trim() === '' || run.sessionId === filter.session.trim());
  queries.setQueryData<InfiniteData<ListRunsResponse, string>>(keyOf(filter), (known) =>
    known === undefined ? known : { ...known, pages: changedPages(known.pages, runs, accepts) },
  );
}

function keyOf({ states, agent, session }: RunFilter): string[] {
  return ['runs', states.join(), agent, session];
}

function statesOf({ states }: RunFilter): RunState[] {
  return states.flatMap((word) => STATES.get(word) ?? []);
}
