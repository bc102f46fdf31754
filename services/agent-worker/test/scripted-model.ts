import type { JsonObject } from '@writ/kernel';
import { createModelSimulator, type ModelSimulator } from '@writ/simulator';
import type { FakeModel } from './fake-meter.ts';

const SCRIPTS = new URL('../../../examples/refund-desk/scripts', import.meta.url).pathname;

/**
 * Model simulator with the refund desk's scripts; it answers the model calls of a fake meter, which contain the
 * worker's real prompts.
 */
export class ScriptedModel implements AsyncDisposable {
  readonly #simulator: ModelSimulator;

  private constructor(simulator: ModelSimulator) {
    this.#simulator = simulator;
  }

  static async start(): Promise<ScriptedModel> {
    return new ScriptedModel(await createModelSimulator({ scripts: SCRIPTS }));
  }

  /** A model that follows a script. */
  model(script: string): FakeModel {
    return async (prompt: JsonObject) => {
      const response = await fetch(`${this.#simulator.url}/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer any' },
        body: JSON.stringify({
          model: `sim:${script}`,
          messages: [{ role: 'user', content: JSON.stringify(prompt) }],
        }),
      });
      const body = (await response.json()) as {
        readonly choices?: readonly { readonly message: { readonly content: string } }[];
      };
      const text = body.choices?.[0]?.message.content;
      if (text === undefined) throw new Error(JSON.stringify(body));
      return text;
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#simulator.close();
  }
}
