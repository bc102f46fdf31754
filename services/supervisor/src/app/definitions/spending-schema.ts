import { about } from '@writ/kernel';
import { count, DURATION, object, USD, ZERO } from './schema-values.ts';

/** The keys of an agent that limit what it and its run may use. */
export const SPENDING = {
  limits: about(
    'Limits of the loop.',
    object({
      max_steps: about('Maximum number of reviewed actions.', count(), {
        default: '8 for json-action, else unlimited',
        unit: 'steps',
      }),
      max_tool_calls: about(
        'Maximum tool calls of the whole run, including calls that the gateway refuses; the limit of a sub-agent is at most that of its parent.',
        count(),
        { default: '5 for json-action, else unlimited', unit: 'calls' },
      ),
      max_iterations: about(
        'Maximum number of model turns without an answer, for react and orchestrator.',
        count(),
        {
          default: '10',
          unit: 'turns',
        },
      ),
      max_refusals: about(
        'Maximum number of refused actions that are reported to the model; the next refused action ends the agent. For an external agent the limit applies to each request.',
        count(),
        { default: '3', unit: 'actions' },
      ),
      max_retries: about(
        'Maximum number of consecutive restarts without progress after unexpected errors of the agent; a crash of the worker process does not count.',
        count(),
        {
          default: '3',
          unit: 'restarts',
        },
      ),
    }),
  ),
  budget: about(
    'Limits of what the agent may spend; for a root agent, also limits of its run.',
    object({
      max_seconds: about(
        'Active time; it excludes the time in which the agent is parked or waits for a person, a signal, a timer or a feed item.',
        { type: 'number', minimum: 0, maximum: 31_536_000, 'x-zero': ZERO },
        { default: 'unlimited', unit: 's' },
      ),
      max_tokens: about('Prompt and completion tokens together.', count(), {
        default: 'unlimited',
        unit: 'tokens',
      }),
      max_cost_usd: about('Cost of model calls.', USD, { default: 'unlimited', unit: 'USD' }),
      max_turns: about('Model round trips.', count(), { default: 'unlimited', unit: 'turns' }),
      deadline: about(
        'Wall-clock time from the creation of the run, including the time in the start queue.',
        DURATION,
        {
          default: 'unlimited',
        },
      ),
    }),
  ),
  session_budget: about(
    'Caps of the session, applied when a run with this agent as root starts. A later run of the session can lower the caps but not raise them. `session_budget` has no effect on a session whose caps SetCaps has set.',
    object({
      max_tokens: about('Prompt and completion tokens of all runs of the session.', count(), {
        default: 'unlimited',
        unit: 'tokens',
      }),
      max_cost_usd: about('Cost of model calls of all runs of the session.', USD, {
        default: 'unlimited',
        unit: 'USD',
      }),
      max_turns: about('Model round trips of all runs of the session.', count(), {
        default: 'unlimited',
        unit: 'turns',
      }),
    }),
  ),
  spawn: about(
    'Headcount of the run, if the agent is its root.',
    object({
      max_agents: about(
        'Maximum number of agents that hold a slot at the same time, including the root.',
        count(1),
        {
          default: '50',
          unit: 'agents',
        },
      ),
      allow_preempt: about(
        'Whether HIGH and CRITICAL agents may pause agents of lower priority.',
        { type: 'boolean' },
        { default: 'true' },
      ),
      max_total_spawns: about(
        'Maximum number of agents spawned during the run, excluding the root.',
        count(),
        {
          default: 'unlimited',
          unit: 'agents',
        },
      ),
      max_depth: about('Maximum depth of an agent below the root.', count(), {
        default: 'unlimited',
        unit: 'levels',
      }),
    }),
  ),
};
