import { describe, expect, it, onTestFinished } from 'vitest';
import { loadExample, openModelSource } from '../src/index.ts';
import { tempFolder } from './program.ts';

const WRIT_MODELS_FILE = '/etc/writ/models.yaml';

describe('the model that npm start names', () => {
  const describeModel = async (env: Readonly<Record<string, string>>) => {
    const options = { script: 'auto-1000', dataDir: tempFolder() };
    const source = await openModelSource(env, loadExample('refund-desk'), options);
    onTestFinished(() => source.close());
    return source.description;
  };

  it('is that of the models file of the user, which may name another server (SYS-5)', async () => {
    const own = `set in ${WRIT_MODELS_FILE}`;
    expect(await describeModel({ WRIT_MODELS_FILE })).toBe(own);
    expect(await describeModel({ WRIT_MODELS_FILE, OPENAI_API_KEY: 'key' })).toBe(own);
  });

  it('is the endpoint of the example without such a file (SYS-5)', async () => {
    expect(await describeModel({})).toBe('simulated, no key needed');
    expect(await describeModel({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })).toBe(
      'gpt-4.1-mini at http://127.0.0.1:1/v1',
    );
  });
});
