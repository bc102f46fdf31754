import type { JsonObject, ToolCall } from '@writ/kernel';

/** What a tool of the world does when it is run. */
export type Behaviour = (args: JsonObject, call: ToolCall) => Promise<unknown>;

/** One run of a tool. */
export interface Execution {
  readonly tool: string;
  readonly args: JsonObject;
  readonly call: ToolCall;
}

/** The world that a test's tools act on: it remembers every execution, whatever the gateway says. */
export class World {
  readonly executions: Execution[] = [];
  readonly #behaviours = new Map<string, Behaviour>();
  readonly #watchers = new Set<() => void>();

  /** Makes `tool` behave so from now on. */
  on(tool: string, behaviour: Behaviour): void {
    this.#behaviours.set(tool, behaviour);
  }

  /** What the tools of the module call. */
  async run(tool: string, args: JsonObject, call: ToolCall): Promise<unknown> {
    this.executions.push({ tool, args, call });
    for (const look of this.#watchers) look();
    const behaviour = this.#behaviours.get(tool);
    return behaviour === undefined ? { status: 'ok', tool } : await behaviour(args, call);
  }

  /** Names of the tools that were run, in order. */
  ran(): readonly string[] {
    return this.executions.map(({ tool }) => tool);
  }

  /** Resolves with the `count`th execution. */
  async executed(count: number): Promise<Execution> {
    const { promise, resolve } = Promise.withResolvers<Execution>();
    const look = () => {
      const found = this.executions[count - 1];
      if (found !== undefined) resolve(found);
    };
    this.#watchers.add(look);
    look();
    return await promise.finally(() => this.#watchers.delete(look));
  }
}

/** A tool that answers when the test says so. */
export function held(): { readonly behaviour: Behaviour; release(result?: unknown): void } {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  return { behaviour: () => promise, release: (result = { status: 'ok' }) => resolve(result) };
}

/** A tool that stops, with an error, when it is told to, and never before. */
export const stopsWhenTold: Behaviour = (_, { signal }) =>
  new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });

/** A tool that never answers, whatever it is told. */
export const neverAnswers: Behaviour = () => new Promise(() => undefined);

// Modules of tools are imported by the gateway, perhaps as a second copy: the worlds must be shared.
const SHARED = Symbol.for('writ.test.worlds');
const shared = globalThis as { [SHARED]?: Map<string, World> };

/** The world of this name. */
export function worldOf(name: string): World {
  shared[SHARED] ??= new Map();
  const world = shared[SHARED].get(name) ?? new World();
  shared[SHARED].set(name, world);
  return world;
}
