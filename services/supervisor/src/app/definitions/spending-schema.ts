import { about } from '@writ/kernel';
import { count, DURATION, object, USD, ZERO } from './schema-values.ts';

/** The keys of an agent that limit what it and its run may use. */
export const SPENDING = {
  limits: about(
    'Limits of the loop.',
    object({
      max_steps: about('Reviewed actions.', count(), {
        default: '8 for json-action, else unlimited',
        unit: 'steps',
      }),
      max_tool_calls: about(
        'Tool calls of the whole run, including those that the gateway refuses; a sub-agent has at most the value of its parent.',
        count(),
        { default: '5 for json-action, else unlimited', unit: 'calls' },
      ),
      max_iterations: about('Model turns without an answer, for react and orchestrator.', count(), {
        default: '10',
        unit: 'turns',
      }),
      max_refusals: about(
        'Refused actions that are reported to the model; the next one ends the agent. For an external agent the limit is for one request.',
        count(),
        { default: '3', unit: 'actions' },
      ),
      max_retries: about(
        'Restarts after unexpected errors while the agent runs, without progress between them; a crash of the worker process does not count.',
        count(),
        {
          default: '3',
          unit: 'restarts',
        },
      ),
    }),
  ),
  budget: about(
    'What the agent, and as a root its run, may spend.',
    object({
      max_seconds: about(
        'Active time; time in which the agent waits for a person, a signal, a timer or a feed item, or is parked, does not count.',
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
        'Wall-clock time from the creation of the run; the wait for its start counts.',
        DURATION,
        {
          default: 'unlimited',
        },
      ),
    }),
  ),
  session_budget: about(
    'Caps of the whole session of a run that the agent is the root of; a later run can lower them and never raise them, and they have no effect while SetCaps has set caps of the session.',
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
    'Headcount of the run, when the agent is its root.',
    object({
      max_agents: about('Agents that hold a slot at the same time, the root included.', count(1), {
        default: '50',
        unit: 'agents',
      }),
      allow_preempt: about(
        'Whether HIGH and CRITICAL agents may pause agents of lower priority.',
        { type: 'boolean' },
        { default: 'true' },
      ),
      max_total_spawns: about('Agents spawned during the run, without the root.', count(), {
        default: 'unlimited',
        unit: 'agents',
      }),
      max_depth: about('Depth of an agent below the root.', count(), {
        default: 'unlimited',
        unit: 'levels',
      }),
    }),
  ),
};
