import { resultJson } from '@writ/client/display';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { newId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { followRun, readHuman } from '@writ/platform/terminal';
import { ATTR_GEN_AI_INPUT_MESSAGES, ATTR_GEN_AI_OUTPUT_MESSAGES } from '@writ/telemetry';
import { startOtlpReceiver } from '@writ/testing/otlp';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const GOAL =
  'Zebra crossing: refund user 42. The password: hunter22, and sk-live-abcdefghijklmnop.';
const CONTENT = [ATTR_GEN_AI_INPUT_MESSAGES, ATTR_GEN_AI_OUTPUT_MESSAGES];

/** Starts a platform with all telemetry enabled, and a collector that accepts every export. */
async function startObserved(env: Readonly<Record<string, string>> = {}) {
  const receiver = await startOtlpReceiver();
  const lines: string[] = [];
  const test = await startTestPlatform({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.httpUrl,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      WRIT_LOG_LEVEL: 'trace',
      ...env,
    },
    onLogLine: (line) => void lines.push(line),
  });
  return {
    receiver,
    lines,
    run: (script: string, retention?: HistoryRetention) => runScript(test, script, retention),
    /** Resolves when everything is exported. */
    stop: () => test.platform.stop(),
    async close() {
      await test.close();
      await receiver.close();
    },
  };
}
type Observed = Awaited<ReturnType<typeof startObserved>>;

function neverAsked(): never {
  throw new Error('The test does not expect a question.');
}

/** Runs a script to its end; a human approves 800 USD when asked. */
async function runScript({ client }: TestPlatform, script: string, retention?: HistoryRetention) {
  const { run } = await client.runs.startRun({
    requestId: newId('req'),
    agent: loadExample('refund-desk').agent,
    goal: GOAL,
    model: `sim-${script}`,
    ...(retention !== undefined && { retention }),
  });
  const runId = run?.runId ?? '';
  const ended = await followRun(client, runId, readHuman('cap:800', neverAsked), {
    onEvent: () => undefined,
    onQuestion: () => undefined,
    onRefusedAnswer: () => undefined,
  });
  return { runId, result: resultJson(ended) };
}

/**
 * Returns the free texts in a value, without ids and numbers. Splits them into pieces, because exports escape them in
 * different ways, and omits pieces of fewer than ten characters.
 */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') {
    try {
      const inner: unknown = JSON.parse(value);
      if (typeof inner === 'object' && inner !== null) return textsIn(inner);
    } catch {
      // A plain text.
    }
    return value
      .split(/[\n"\\]+/)
      .map((piece) => piece.trim())
      .filter((piece) => piece.length >= 10 && /[\s@]/.test(piece));
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}

/** All exports and log lines as text. */
const exportedBy = ({ receiver, lines }: Observed) => JSON.stringify([receiver.exports(), lines]);

let silent: Observed;
let captured: Observed;
let kept = '';
let brief = '';
/** The contents of the run, from the captured messages and the results. */
let contents: ReadonlySet<string>;

const chatsOf = (runId: string) =>
  captured.receiver
    .spans()
    .filter(({ attributes, name }) => attributes['writ.run_id'] === runId && /^chat /.test(name));

beforeAll(async () => {
  const setting = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
  [silent, captured] = await Promise.all([
    startObserved(),
    startObserved({ [setting]: 'SPAN_ONLY' }),
  ]);
  const paid = await captured.run('escalate-1200');
  kept = paid.runId;
  brief = (await captured.run('escalate-1200', HistoryRetention.RUN)).runId;
  await captured.stop();
  const results = [paid.result, (await silent.run('escalate-1200')).result];
  for (const script of ['email-first', 'bad-arg-type', 'bad-json'])
    results.push((await silent.run(script)).result);
  await silent.stop();
  const messages = chatsOf(kept).map(({ attributes }) => CONTENT.map((name) => attributes[name]));
  contents = new Set(textsIn([GOAL, results, messages]));
});
afterAll(() => Promise.all([silent?.close(), captured?.close()]));

describe('telemetry of the refund desk', () => {
  it('omits the goal, arguments, results, answers and model messages from spans, metrics and logs (SYS-1, SYS-6)', () => {
    const { receiver, lines } = silent;
    expect(receiver.spans().length).toBeGreaterThan(100);
    expect(receiver.logs().length).toBeGreaterThan(100);
    expect(receiver.points().length).toBeGreaterThan(10);
    expect(lines.length).toBeGreaterThan(100);
    // The contents include every kind of text.
    for (const part of [
      'Zebra crossing',
      'Refund of the annual plan',
      'You work at the refund desk',
      'anna@example.com',
    ])
      expect([...contents].join('\n')).toContain(part);
    const all = exportedBy(silent);
    expect([...contents].filter((text) => all.includes(text))).toEqual([]);
    for (const { attributes } of receiver.spans())
      for (const name of CONTENT) expect(attributes).not.toHaveProperty([name]);
  });
});

describe('telemetry with content captured', () => {
  it('puts model requests and answers on the spans of model calls only (SYS-1)', () => {
    const chats = chatsOf(kept);
    expect(chats.length).toBeGreaterThan(1);
    for (const { attributes } of chats) {
      expect(String(attributes[ATTR_GEN_AI_INPUT_MESSAGES])).toContain('Zebra crossing');
      expect(JSON.parse(String(attributes[ATTR_GEN_AI_OUTPUT_MESSAGES]))).toMatchObject([
        { role: 'assistant', parts: [{ type: 'text' }], finish_reason: 'end_turn' },
      ]);
    }
    const { receiver, lines } = captured;
    for (const { name, attributes } of receiver.spans())
      if (!name.startsWith('chat '))
        for (const content of CONTENT) expect(attributes, name).not.toHaveProperty([content]);
    expect(JSON.stringify([receiver.logs(), lines])).not.toContain('Zebra crossing');
  });

  it('redacts secrets (SYS-6)', () => {
    expect(exportedBy(captured)).toContain('[redacted]');
    for (const secret of ['hunter22', 'abcdefghijklmnop'])
      expect(exportedBy(captured)).not.toContain(secret);
  });

  it('omits the contents of a run whose history is deleted at its end (SUP-4)', () => {
    const chats = chatsOf(brief);
    expect(chats.length).toBeGreaterThan(1);
    for (const { attributes } of chats)
      for (const name of CONTENT) expect(attributes).not.toHaveProperty([name]);
  });
});
