import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { APIError } from 'openai';
import { expect, it, onTestFinished } from 'vitest';
import {
  ALIAS,
  EXTERNAL_AGENTS,
  PROVIDER_KEY,
  proxyModels,
  startExternalRun,
} from '../agent-proxy/external-run.ts';
import { answerText, scriptedModel } from '../agent-proxy/scripted-model.ts';
import { servePlatform } from '../e2e/served-platform.ts';

const RUNS = 20;
const CALLS_OF_A_RUN = 50;
/** Tokens that one answer uses. */
const TOKENS_OF_A_CALL = 35n;
/** Token cap of the tenant per day; it covers about a third of the calls. */
const MAX_TOKENS = 12_000n;

it('reserves and settles at most the cap in 1,000 concurrent calls over HTTP, and answers each of them (AP-2, EM-3, BD-2)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-agent-proxy-load-'));
  const caps = `tenants: { default: { day: { max_tokens: ${MAX_TOKENS} } } }`;
  writeFileSync(join(dataDir, 'models.yaml'), `${proxyModels(model)}${caps}\n`);
  writeFileSync(join(dataDir, 'agents.yaml'), EXTERNAL_AGENTS);
  const platform = await servePlatform(dataDir, 'refund-desk', {
    WRIT_MODELS_FILE: join(dataDir, 'models.yaml'),
    WRIT_AGENTS_FILE: join(dataDir, 'agents.yaml'),
    WRIT_TEST_ANTHROPIC_KEY: PROVIDER_KEY,
  });
  onTestFinished(async () => {
    await platform.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { usage } = platform.client;
  const spent = async () => {
    const { levels } = await usage.getBalances({});
    const day = levels.find(({ level }) => level === BudgetLevel.TENANT_DAY);
    return { used: day?.usedTokens ?? 0n, reserved: day?.reservedTokens ?? 0n };
  };
  const runs = await Promise.all(Array.from({ length: RUNS }, () => startExternalRun(platform)));
  const answers: string[] = [];
  const calls = runs.flatMap(({ openai }) =>
    Array.from({ length: CALLS_OF_A_RUN }, async (_, index) => {
      const content = `Question ${index}.`;
      const asked = { model: ALIAS, messages: [{ role: 'user', content } as const] };
      // Disables retries, so that each refused or lost call is visible.
      const answer = await openai.chat.completions.create(asked, { maxRetries: 0 }).then(
        () => 'answered',
        (error: unknown) =>
          error instanceof APIError && error.status !== undefined
            ? `${error.status} ${error.code}`
            : `lost: ${String(error)} ${String((error as Error).cause)}`,
      );
      answers.push(answer);
    }),
  );
  const all = Promise.all(calls);
  const seen: bigint[] = [];
  while (answers.length < calls.length) {
    const { used, reserved } = await spent();
    seen.push(used + reserved);
  }
  await all;
  expect([...new Set(answers)].toSorted()).toEqual(['429 tenant_budget_exhausted', 'answered']);
  expect(seen.filter((tokens) => tokens > MAX_TOKENS)).toEqual([]);
  expect(seen.some((tokens) => tokens > 0n)).toBe(true);
  const answered = answers.filter((answer) => answer === 'answered').length;
  expect(model.requests).toHaveLength(answered);
  expect(await spent()).toEqual({ used: BigInt(answered) * TOKENS_OF_A_CALL, reserved: 0n });
});
