import type { AskProvider } from './provider.ts';

/**
 * Returns the provider for OpenAI-compatible servers. Its SDK is loaded on the first call, not at
 * startup.
 */
export function lazyProvider(): AskProvider {
  let provider: Promise<AskProvider> | undefined;
  return async (attempt) => {
    provider ??= import('./openai/ask-openai.ts').then(({ createOpenAiProvider }) =>
      createOpenAiProvider(),
    );
    return (await provider)(attempt);
  };
}
