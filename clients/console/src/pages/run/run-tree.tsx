import { Group, Text } from '@mantine/core';
import { printable, wordOf } from '@writ/client/display';
import { type Slot, SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { WordBadge } from '../../parts/state-badge.tsx';
import classes from './run-tree.module.css';
import type { AgentState, RunModel, TreeAgent } from './timeline.ts';
import { useRunPool } from './use-run.ts';

const COLORS: Readonly<Record<AgentState, string>> = {
  running: 'blue',
  waiting: 'yellow',
  paused: 'orange',
  ended: 'gray',
};

/** The agents of a run below their parents, with state and priority. */
export function RunTree({ runId, model }: { readonly runId: string; readonly model: RunModel }) {
  const pool = useRunPool(runId);
  if (model.agents.size === 0) {
    return (
      <Text size="sm" className="muted">
        No agent has started yet.
      </Text>
    );
  }
  const { holders = [], paused = [], waiting = [] } = pool.data ?? {};
  const slots = new Map(
    [...holders, ...paused, ...waiting].map((slot) => [slot.agent?.instance ?? '', slot]),
  );
  const children = byParent(model.agents);
  return (
    <>
      <ul className={classes.tree}>
        {(children.get('') ?? []).map((each) => (
          <Branch key={each.agent.instance} each={each} childrenOf={children} slots={slots} />
        ))}
      </ul>
      {pool.data && (
        <Text size="xs" className="muted" mt="xs">
          {pool.data.held} of {pool.data.budget?.maxAgents ?? 'unlimited'} slots held,{' '}
          {pool.data.totalSpawns} spawned, {pool.data.totalPauses} paused, {pool.data.totalRefusals}{' '}
          refused
        </Text>
      )}
    </>
  );
}

function Branch({
  each,
  childrenOf,
  slots,
}: {
  readonly each: TreeAgent;
  readonly childrenOf: ReadonlyMap<string, readonly TreeAgent[]>;
  readonly slots: ReadonlyMap<string, Slot>;
}) {
  const { agent, state, detail } = each;
  const slot = slots.get(agent.instance);
  const shown = state === 'ended' ? state : (stateOfSlot(slot) ?? state);
  const below = childrenOf.get(agent.instance) ?? [];
  const about = [
    slot === undefined ? '' : `priority ${wordOf(Priority, slot.priority)}`,
    detail || (shown === 'waiting' ? (slot?.waitingFor.join(', ') ?? '') : ''),
  ].filter((text) => text !== '');
  return (
    <li>
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <div style={{ minWidth: 0, flex: 1 }}>
          <Text size="sm" fw={600}>
            {agent.name}
          </Text>
          <Text size="xs" className="muted mono clip">
            {agent.instance}
          </Text>
          {about.length > 0 && (
            <Text size="xs" className="muted">
              {printable(about.join('; '))}
            </Text>
          )}
        </div>
        <WordBadge word={shown} color={COLORS[shown]} />
      </Group>
      {below.length > 0 && (
        <ul className={classes.tree}>
          {below.map((child) => (
            <Branch key={child.agent.instance} each={child} childrenOf={childrenOf} slots={slots} />
          ))}
        </ul>
      )}
    </li>
  );
}

function stateOfSlot(slot: Slot | undefined): AgentState | undefined {
  switch (slot?.state) {
    case SlotState.ACTIVE:
      return 'running';
    case SlotState.SUSPENDED:
    case SlotState.WAITING:
      return 'waiting';
    case SlotState.PAUSED:
      return 'paused';
    default:
      return undefined;
  }
}

function byParent(agents: RunModel['agents']): ReadonlyMap<string, readonly TreeAgent[]> {
  const children = new Map<string, TreeAgent[]>();
  for (const each of agents.values()) {
    const parent = each.parent !== undefined && agents.has(each.parent) ? each.parent : '';
    children.set(parent, [...(children.get(parent) ?? []), each]);
  }
  return children;
}
