import type { AskProvider } from './provider.ts';

/** The provider for OpenAI-compatible servers. Its SDK loads with the first call, not with the service. */
export function lazyProvider(): AskProvider {
  let provider: Promise<AskProvider> | undefined;
  return async (attempt) => {
    provider ??= import('./openai/ask-openai.ts').then(({ createOpenAiProvider }) =>
      createOpenAiProvider(),
    );
    return (await provider)(attempt);
  };
}
