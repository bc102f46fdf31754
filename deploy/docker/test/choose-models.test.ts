import { describe, expect, it } from 'vitest';
import { chooseModels } from '../choose-models.ts';

const SIMULATOR = 'http://simulator:8090/v1';

describe('the models of the image', () => {
  it.each([
    ['nothing', {}, { OPENAI_BASE_URL: SIMULATOR, OPENAI_API_KEY: 'simulated' }],
    ['a key alone', { OPENAI_API_KEY: 'sk-1' }, { OPENAI_BASE_URL: '', OPENAI_API_KEY: 'sk-1' }],
    [
      'an address alone',
      { OPENAI_BASE_URL: 'http://models:1/v1' },
      { OPENAI_BASE_URL: 'http://models:1/v1', OPENAI_API_KEY: 'none' },
    ],
    [
      'both',
      { OPENAI_BASE_URL: 'http://models:1/v1', OPENAI_API_KEY: 'sk-1' },
      { OPENAI_BASE_URL: 'http://models:1/v1', OPENAI_API_KEY: 'sk-1' },
    ],
  ])(
    'select the provider or the simulator for %s, without sending a key to the simulator (SYS-5)',
    (_, set, chosen) => {
      const env = {
        OPENAI_BASE_URL: '',
        OPENAI_API_KEY: '',
        WRIT_SIMULATOR_URL: SIMULATOR,
        ...set,
      };
      chooseModels(env);
      expect(env).toMatchObject(chosen);
    },
  );

  it('do not change if no simulator is configured (SYS-5)', () => {
    const env: NodeJS.ProcessEnv = {};
    chooseModels(env);
    expect(env).toEqual({});
  });
});
