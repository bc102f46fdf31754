import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadExample, openModelSource } from '../src/index.ts';
import { tempFolder } from './program.ts';

const WRIT_MODELS_FILE = '/etc/writ/models.yaml';
const MISTRAL = `
  large: { base_url: https://api.mistral.ai/v1, api_key_env: MISTRAL_API_KEY, model: mistral-large-latest }`;
// biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the models file.
const ENDPOINT = '${OPENAI_BASE_URL:-https://api.openai.com/v1}';
const OPENAI = `
  main: { base_url: "${ENDPOINT}", api_key_env: OPENAI_API_KEY, model: gpt-4.1-mini }`;

async function modelSource(env: Readonly<Record<string, string>>) {
  const options = { script: 'auto-1000', dataDir: tempFolder() };
  const source = await openModelSource(env, loadExample('refund-desk'), options);
  onTestFinished(() => source.close());
  return source;
}

/** The settings of a user whose models file has these models. */
function ownModels(models: string) {
  const file = join(tempFolder(), 'models.yaml');
  writeFileSync(file, `models:${models}\n`);
  return { WRIT_MODELS_FILE: file, MISTRAL_API_KEY: 'key' };
}

describe('the model that npm start names', () => {
  const describeModel = async (env: Readonly<Record<string, string>>) =>
    (await modelSource(env)).description;

  it('is described as set in the models file of the user, even when OPENAI_API_KEY is set (SYS-5)', async () => {
    const own = `set in ${WRIT_MODELS_FILE}`;
    expect(await describeModel({ WRIT_MODELS_FILE })).toBe(own);
    expect(await describeModel({ WRIT_MODELS_FILE, OPENAI_API_KEY: 'key' })).toBe(own);
  });

  it('is the simulator or the endpoint of the environment when no models file is set (SYS-5)', async () => {
    expect(await describeModel({})).toBe('simulated, no key needed');
    expect(await describeModel({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })).toBe(
      'gpt-4.1-mini at http://127.0.0.1:1/v1',
    );
  });
});

describe('the simulator', () => {
  it('is not started for a models file whose models all use other servers (SYS-5)', async () => {
    const own = ownModels(MISTRAL);
    expect(await modelSource(own)).toMatchObject({
      description: `set in ${own.WRIT_MODELS_FILE}`,
      simulated: false,
      env: {},
    });
  });

  it('simulates the models whose URL is OPENAI_BASE_URL unless OPENAI_API_KEY is set, and lists the other models (SYS-5)', async () => {
    expect(await modelSource(ownModels(OPENAI))).toMatchObject({
      simulated: true,
      providerModels: [],
    });
    expect(await modelSource(ownModels(MISTRAL + OPENAI))).toMatchObject({
      simulated: true,
      providerModels: ['large'],
    });
    expect(await modelSource({ ...ownModels(OPENAI), OPENAI_API_KEY: 'key' })).toMatchObject({
      simulated: false,
    });
  });
});
