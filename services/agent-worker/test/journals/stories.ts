import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import {
  AgentKind,
  PreemptionHandling,
  RefusalHandling,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type { JsonObject } from '@writ/kernel';
import { expect } from 'vitest';
import { AGENT, type ManifestFields, RUN, TENANT } from '../delivery.ts';
import { type FakeAnswer, modelTimeout } from '../fake-meter.ts';
import { ruleOn } from '../refund-rules.ts';
import type { World } from '../world.ts';

/** A run whose journals are recorded. */
export interface Story {
  readonly manifest: Partial<ManifestFields>;
  /** Answers of the model, in order, by name of the agent; the last answer repeats. */
  readonly answers?: Readonly<Record<string, readonly FakeAnswer[]>>;
  /** Manifests of the children, by name. */
  readonly children?: Readonly<Record<string, Partial<ManifestFields>>>;
  /** Verdict on a proposal; default: approve. */
  readonly rule?: World['supervisor']['rule'];
  /** Prepares the fakes before the delivery. */
  readonly prepare?: (world: World) => void;
  /** Sends the answers and signals that the run waits for, and starts other runs that it needs. */
  readonly act?: (world: World) => Promise<unknown>;
  /** Whether an earlier run in the same session precedes the recorded run; default: false. */
  readonly isSecond?: boolean;
  readonly goal?: string;
}

const { REACT, ORCHESTRATOR, FLOW, CUSTOM, USER_PROXY, INFORMATION, PERSONAL_FEED } = AgentKind;
const LOOK_UP = 'get_refund_context';
const CHILD = { kind: REACT, tools: [LOOK_UP] };
const STOPS = { onRefusal: RefusalHandling.STOP };
const TELLS = { onRefusal: RefusalHandling.TELL_MODEL };
const says = (...answers: readonly FakeAnswer[]) => ({ answers: { [AGENT.name]: answers } });
const use = (name: string, options: JsonObject = {}) => [
  { name, optionsJson: JSON.stringify(options) },
];

/** A model answer with tool calls. */
function calls(...uses: readonly (readonly [string, JsonObject])[]): FakeAnswer {
  return { toolUses: uses.map(([tool, args]) => ({ tool, args })) };
}

const lookUp = (user_id = 42) => calls([LOOK_UP, { user_id }]);
const refund = (amount_usd: number) =>
  calls(['issue_refund', { user_id: 42, amount_usd, reason: 'Annual plan.' }]);
const toolJson = (name: string, args: JsonObject) => JSON.stringify({ kind: 'tool', name, args });
const final = (answer: string) => JSON.stringify({ kind: 'final', answer });
const READ = toolJson(LOOK_UP, { user_id: 42 });
const PAY = toolJson('issue_refund', { user_id: 42, amount_usd: 1200, reason: 'Annual plan.' });

async function signal(world: World, name: string, payload: JsonObject = {}, id = name) {
  const to = { tenant: TENANT, runId: RUN, agentInstance: AGENT.instance };
  const requestId = `s-${id.replaceAll(/[^a-z0-9]/g, '-')}`;
  await world.until(name.startsWith('human_reply') ? 'WAITING_FOR_INPUT' : 'SUSPENDED');
  await world.worker.signal({ ...to, requestId, name, payloadJson: JSON.stringify(payload) });
}

/** Returns a function that waits until the agent is suspended, and then decides its approval as a person. */
const decides =
  (answer: Parameters<World['approve']>[1]) =>
  async (world: World): Promise<void> => {
    const { waitingFor } = await world.until('SUSPENDED');
    await world.approve(waitingFor[0]?.split(':')[1] ?? '', answer);
  };

/** Returns a rule that blocks a tool and decides all other actions by the rules of the refund desk. */
const blocks =
  (tool: string): NonNullable<Story['rule']> =>
  (raw) => {
    const ruling = ruleOn(raw, [LOOK_UP]);
    const isBlocked = raw.includes(tool);
    return isBlocked ? { ...ruling, verdict: 'block', reason: 'not_allowed' } : ruling;
  };

const toolFails = (world: World) => {
  world.gateway.answer = () => ({
    status: CallStatus.ERROR,
    stopReason: `tool_error:${LOOK_UP}`,
    message: 'The tool failed.',
  });
};

const many = (count: number, answer: (index: number) => FakeAnswer): FakeAnswer[] =>
  Array.from({ length: count }, (_, index) => answer(index));

const delegates = (...agents: readonly string[]) =>
  calls(...agents.map((agent) => [`handoff_${agent}`, { task: `Do it, ${agent}.` }] as const));
const LEAD = {
  kind: ORCHESTRATOR,
  tools: [],
  subAgents: [{ name: 'reader' }, { name: 'counter' }],
};
const TEAM = { reader: CHILD, counter: CHILD, closer: CHILD };
const working = {
  reader: [lookUp(), 'The reader is done.'],
  counter: [lookUp(), 'The counter is done.'],
  closer: ['The closer is done.'],
};
const custom = (name: string, more: Partial<ManifestFields> = {}) => ({
  kind: CUSTOM,
  name,
  ...more,
});
const flow = (steps: unknown) => ({
  ...LEAD,
  kind: FLOW,
  subAgents: [{ name: 'reader' }, { name: 'counter' }, { name: 'closer' }],
  optionsJson: JSON.stringify({ steps }),
});

const REACT_STORIES = {
  'react-answers': { manifest: { kind: REACT, tools: [] }, ...says('Hello.') },
  'react-tool': { manifest: CHILD, ...says(lookUp(), 'Anna.') },
  'react-tools-in-one-turn': {
    manifest: CHILD,
    ...says(calls([LOOK_UP, { user_id: 1 }], [LOOK_UP, { user_id: 2 }]), 'Both.'),
  },
  'react-tool-fails': { manifest: CHILD, prepare: toolFails, ...says(lookUp(), 'It failed.') },
  'react-told-of-refusal': {
    manifest: { kind: REACT, ...TELLS },
    rule: blocks('issue_refund'),
    ...says(refund(500), 'Refused.'),
  },
  'react-stopped-by-refusal': {
    manifest: { kind: REACT, ...STOPS },
    rule: blocks('issue_refund'),
    ...says(refund(500)),
  },
  'react-too-many-refusals': {
    manifest: { kind: REACT, limits: { maxRefusals: 2 } },
    rule: blocks('issue_refund'),
    ...says(refund(500), refund(400), refund(300)),
  },
  'react-too-many-iterations': {
    manifest: { ...CHILD, limits: { maxIterations: 2 } },
    ...says(lookUp(1), lookUp(2), lookUp(3)),
  },
  'react-stuck': { manifest: CHILD, ...says(lookUp()) },
  'react-cut-answer': {
    manifest: { kind: REACT, tools: [] },
    ...says({ text: 'First half, ', isCut: true }, 'second half.'),
  },
  'react-near-budget': {
    manifest: CHILD,
    ...says({ text: 'Nearly.', nearBudget: true }),
  },
  'react-review-edited': {
    manifest: { kind: REACT },
    rule: ruleOn,
    act: decides({ args: { amount_usd: 800 } }),
    ...says(lookUp(), refund(1200), 'Refunded.'),
  },
  'react-review-rejected': {
    manifest: { kind: REACT },
    rule: ruleOn,
    act: decides('reject'),
    ...says(lookUp(), refund(1200), 'Rejected.'),
  },
  'react-output-topic': {
    manifest: { kind: REACT, tools: [], outputTopic: 'articles' },
    ...says('An article.'),
  },
  'react-tool-choice': {
    manifest: { ...CHILD, initialToolChoice: LOOK_UP },
    ...says(lookUp(), 'Ok.'),
  },
  'react-second-run': { manifest: CHILD, isSecond: true, ...says(lookUp(), 'Anna.') },
  'react-model-fails': {
    manifest: { kind: REACT, tools: [] },
    prepare: (world) => world.faults.failAt('before generate op-2', modelTimeout()),
    ...says('Never.'),
  },
} satisfies Record<string, Story>;

const CONTEXT_STORIES = {
  'context-sliding-window': {
    manifest: { ...CHILD, context: { contextWindow: 300n, strategy: 'sliding_window' } },
    ...says(...many(4, lookUp), 'Done.'),
  },
  'context-compact': {
    manifest: { ...CHILD, context: { contextWindow: 300n, strategy: 'compact' } },
    ...says(...many(4, lookUp), 'Done.'),
  },
  'context-checkpoint': {
    manifest: {
      ...CHILD,
      limits: { maxIterations: 40 },
      context: { contextWindow: 300n, strategy: 'sliding_window' },
    },
    ...says(...many(35, lookUp), 'Done.'),
  },
  'middleware-cache': {
    manifest: { ...CHILD, functionMiddleware: use('cache', { tools: [LOOK_UP] }) },
    ...says(lookUp(), lookUp(), 'Done.'),
  },
  'middleware-retry': {
    manifest: { ...CHILD, chatMiddleware: use('retry', { base_ms: 0 }) },
    prepare: (world) => world.faults.failAt('before generate op-2', modelTimeout()),
    ...says(lookUp(), 'Done.'),
  },
  'middleware-redaction': {
    manifest: { ...CHILD, chatMiddleware: use('redaction'), functionMiddleware: use('redaction') },
    goal: 'Write to anna@example.com.',
    ...says(lookUp(), 'Done.'),
  },
  'middleware-logging': {
    manifest: { ...CHILD, agentMiddleware: use('logging'), chatMiddleware: use('logging') },
    ...says(lookUp(), 'Done.'),
  },
} satisfies Record<string, Story>;

const JSON_STORIES = {
  'json-refund': { manifest: {}, rule: ruleOn, ...says(READ, final('Done.')) },
  'json-review-edited': {
    manifest: {},
    rule: ruleOn,
    act: decides({ args: { amount_usd: 800 } }),
    ...says(READ, PAY, final('800 USD.')),
  },
  'json-review-rejected': {
    manifest: {},
    rule: ruleOn,
    act: decides('reject'),
    ...says(READ, PAY, final('Nothing.')),
  },
  'json-told-of-refusal': {
    manifest: TELLS,
    rule: blocks('issue_refund'),
    ...says(READ, PAY, final('Refused.')),
  },
  'json-invalid-action': { manifest: {}, rule: ruleOn, ...says('No JSON.') },
  'json-synthesis': {
    manifest: { limits: { maxSteps: 2 } },
    ...says(READ, toolJson(LOOK_UP, { user_id: 7 }), final('Composed.')),
  },
  'json-tool-fails': { manifest: TELLS, prepare: toolFails, ...says(READ, final('It failed.')) },
  'json-cut-answer': {
    manifest: {},
    ...says({ text: '{"kind":"fin', isCut: true }, final('Done.')),
  },
  'json-unknown-outcome': {
    manifest: {},
    prepare: (world) => {
      world.gateway.answer = () => ({
        status: CallStatus.UNKNOWN,
        stopReason: `outcome_unknown:${LOOK_UP}`,
      });
    },
    act: async (world) => {
      const { waitingFor } = await world.until('SUSPENDED');
      const callId = waitingFor[0]?.split(':')[1] ?? '';
      world.gateway.resolve(RUN, callId, { status: CallStatus.OK, receipt: 'receipt-late' });
      await world.wake('resolved', world.supervisor.currentDecision(RUN, callId));
    },
    ...says(READ, final('Resolved.')),
  },
  'json-checkpoint': {
    manifest: { limits: { maxSteps: 40 } },
    ...says(...many(35, (index) => toolJson(LOOK_UP, { user_id: index })), final('Done.')),
  },
} satisfies Record<string, Story>;

const TEAM_STORIES = {
  'orchestrator-one-handoff': {
    manifest: LEAD,
    children: TEAM,
    answers: { ...working, [AGENT.name]: [delegates('reader'), 'Read.'] },
  },
  'orchestrator-two-handoffs': {
    manifest: LEAD,
    children: TEAM,
    answers: { ...working, [AGENT.name]: [delegates('reader', 'counter'), 'Both.'] },
  },
  'orchestrator-handoff-and-tool': {
    manifest: { ...LEAD, tools: [LOOK_UP] },
    children: TEAM,
    answers: { ...working, [AGENT.name]: [lookUp(), delegates('reader'), 'Done.'] },
  },
  'orchestrator-no-slot': {
    manifest: LEAD,
    children: TEAM,
    prepare: (world) => {
      world.supervisor.slotRefusal = () => 'max_agents is reached.';
    },
    answers: { ...working, [AGENT.name]: [delegates('reader'), 'No slot.'] },
  },
  'orchestrator-child-fails': {
    manifest: LEAD,
    children: { ...TEAM, reader: { ...CHILD, limits: { maxIterations: 1 } } },
    answers: { ...working, reader: [lookUp()], [AGENT.name]: [delegates('reader'), 'It failed.'] },
  },
  'orchestrator-child-times-out': {
    manifest: {
      ...LEAD,
      subAgents: [
        {
          name: 'person',
          askTimeout: { $typeName: 'google.protobuf.Duration', seconds: 0n, nanos: 5_000_000 },
        },
      ],
    },
    children: { person: { kind: USER_PROXY, tools: [] } },
    answers: { [AGENT.name]: [delegates('person'), 'Too late.'] },
  },
  'orchestrator-partial-child': {
    manifest: LEAD,
    children: { ...TEAM, reader: { ...CHILD, onPreempt: PreemptionHandling.PARTIAL } },
    act: async (world) => {
      await expect.poll(() => world.gateway.executed.length).toBeGreaterThan(0);
      await world.until('PAUSED', RUN, 'reader');
    },
    prepare: (world) => {
      const held = world.faults.holdAt('before generate reader-1 op-3');
      void held.reached.then(async () => {
        const before = world.slots.renewals.length;
        world.slots.set(`${RUN}/reader-1`, 'PAUSED', { hint: true });
        const after = () =>
          world.slots.renewals.slice(before).filter((line) => line.includes('reader'));
        await expect.poll(() => after().length).toBeGreaterThan(1);
        held.release();
      });
    },
    answers: {
      ...working,
      reader: [lookUp(1), lookUp(2), 'All.'],
      [AGENT.name]: [delegates('reader'), 'Partly.'],
    },
  },
  'flow-sequence': { manifest: flow(['reader', 'closer']), children: TEAM, answers: working },
  'flow-parallel': {
    manifest: flow([{ parallel: ['reader', 'counter'] }, 'closer']),
    children: TEAM,
    answers: working,
  },
  'flow-stage-fails': {
    manifest: flow(['reader', 'closer']),
    children: { ...TEAM, reader: { ...CHILD, limits: { maxIterations: 1 } } },
    answers: { ...working, reader: [lookUp()] },
  },
  'flow-invalid': { manifest: flow(['missing']) },
} satisfies Record<string, Story>;

const SIGNAL_STORIES = {
  'user-proxy-answer': {
    manifest: { kind: USER_PROXY, tools: [] },
    act: (world) => signal(world, `human_reply:${RUN}`, { text: 'Blue.' }),
  },
  'user-proxy-form': {
    manifest: { kind: USER_PROXY, tools: [] },
    act: (world) => signal(world, `human_reply:${RUN}`, { colour: 'blue', shade: 2 }),
  },
  'information-items': {
    manifest: {
      kind: INFORMATION,
      tools: [],
      outputTopic: 'articles',
      optionsJson: '{"max_items":3}',
    },
    act: async (world) => {
      for (const id of ['2', '3']) {
        await expect.poll(() => world.meter.paid.length).toBe(Number(id) - 1);
        await signal(world, 'new_source_item', { text: `item ${id}` }, id);
      }
    },
    ...says('One.', 'Two.', 'Three.'),
  },
  'information-checkpoint': {
    manifest: { kind: INFORMATION, tools: [], optionsJson: '{"max_items":12}' },
    act: async (world) => {
      for (let id = 2; id <= 12; id += 1) {
        await expect.poll(() => world.meter.paid.length).toBe(id - 1);
        await signal(world, 'new_source_item', { text: `item ${id}` }, String(id));
      }
    },
    ...says(...many(12, (index) => `Item ${index}.`)),
  },
  'personal-feed': {
    manifest: {
      kind: PERSONAL_FEED,
      tools: [],
      followTopics: ['articles', 'weather'],
      optionsJson: '{"max_items":2}',
    },
    act: async (world) => {
      for (const [index, goal] of ['It rains.', 'It shines.'].entries()) {
        await world.until('SUSPENDED');
        const manifest = custom('publishes', {
          outputTopic: 'weather',
          followTopics: ['articles'],
        });
        await world.deliver({ runId: `run-${index + 2}`, manifest, goal });
        await expect.poll(() => world.meter.paid.length).toBe(index + 1);
      }
    },
    ...says('Rain.', 'Sun.'),
  },
} satisfies Record<string, Story>;

const CUSTOM_STORIES = {
  'custom-asks': { manifest: custom('asks', { tools: [] }), ...says('Yes.') },
  'custom-loops': { manifest: custom('loops', { tools: [LOOK_UP] }), ...says(lookUp(), 'Done.') },
  'custom-second-run': {
    manifest: custom('loops', { tools: [LOOK_UP] }),
    isSecond: true,
    ...says(lookUp(), 'Done.'),
  },
  'custom-notes': { manifest: custom('notes', { tools: [LOOK_UP] }) },
  'custom-spawns': {
    manifest: custom('spawns', { subAgents: [{ name: 'reader' }, { name: 'counter' }] }),
    children: TEAM,
    answers: { ...working, [AGENT.name]: ['Thought.'] },
  },
  'custom-branches': {
    manifest: custom('branches'),
    act: async (world) => {
      await signal(world, 'go_right', { word: 'b' });
      await expect.poll(() => world.meter.paid.length).toBe(3);
      await signal(world, 'go_left', { word: 'a' });
    },
    ...says('One.', 'Two.', 'Three.', 'Four.'),
  },
  'custom-sleeps': {
    manifest: custom('sleeps'),
    act: async (world) => {
      await expect
        .poll(async () => (await world.describe()).waitingFor)
        .toEqual(['new_source_item']);
      await signal(world, 'new_source_item', { word: 'blue' });
    },
    ...says('Blue.'),
  },
  'custom-saves': { manifest: custom('saves'), ...says(...many(5, (index) => `Note ${index}.`)) },
  'custom-publishes': {
    manifest: custom('publishes', { outputTopic: 'articles', followTopics: ['articles'] }),
  },
  'custom-hands-over': {
    manifest: custom('hands-over', { subAgents: [{ name: 'reader' }] }),
    children: TEAM,
    answers: working,
  },
  'custom-fails': { manifest: custom('fails') },
} satisfies Record<string, Story>;

/** The runs, by name. */
export const STORIES: Readonly<Record<string, Story>> = {
  ...REACT_STORIES,
  ...CONTEXT_STORIES,
  ...JSON_STORIES,
  ...TEAM_STORIES,
  ...SIGNAL_STORIES,
  ...CUSTOM_STORIES,
};
