import type { Provider } from './provider.ts';

/**
 * Returns the provider for all dialects. The OpenAI SDK, which the provider uses, is loaded on the first call, not at
 * startup.
 */
export function lazyProvider(): Provider {
  let provider: Promise<Provider> | undefined;
  return async (attempt) => {
    provider ??= import('./model-call/model-provider.ts').then(({ createModelProvider }) =>
      createModelProvider(),
    );
    return (await provider)(attempt);
  };
}
