import type { JsonObject, ToolCall } from '@writ/kernel';

/** Behaviour of a tool. */
export type Behaviour = (args: JsonObject, call: ToolCall) => Promise<unknown>;

/** One execution of a tool. */
export interface Execution {
  readonly tool: string;
  readonly args: JsonObject;
  readonly call: ToolCall;
}

/** Records every execution of a test's tools, independently of the gateway. */
export class World {
  readonly executions: Execution[] = [];
  readonly #behaviours = new Map<string, Behaviour>();
  readonly #watchers = new Set<() => void>();

  /** Sets the behaviour of `tool`. */
  on(tool: string, behaviour: Behaviour): void {
    this.#behaviours.set(tool, behaviour);
  }

  /** Executes a tool; called by the tools of modules/world-tools.ts. */
  async run(tool: string, args: JsonObject, call: ToolCall): Promise<unknown> {
    this.executions.push({ tool, args, call });
    for (const check of this.#watchers) check();
    const behaviour = this.#behaviours.get(tool);
    return behaviour === undefined ? { status: 'ok', tool } : await behaviour(args, call);
  }

  /** Names of the executed tools, in order. */
  ran(): readonly string[] {
    return this.executions.map(({ tool }) => tool);
  }

  /** Resolves with the `count`th execution. */
  async executed(count: number): Promise<Execution> {
    const { promise, resolve } = Promise.withResolvers<Execution>();
    const check = () => {
      const found = this.executions[count - 1];
      if (found !== undefined) resolve(found);
    };
    this.#watchers.add(check);
    check();
    return await promise.finally(() => this.#watchers.delete(check));
  }
}

/** A tool that returns when the test releases it. */
export function held(): { readonly behaviour: Behaviour; release(result?: unknown): void } {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  return { behaviour: () => promise, release: (result = { status: 'ok' }) => resolve(result) };
}

/** A tool that fails when its signal aborts. */
export const failsOnAbort: Behaviour = (_, { signal }) =>
  new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });

/** A tool that never returns and ignores its signal. */
export const neverReturns: Behaviour = () => new Promise(() => undefined);

// The gateway may import a second copy of this module, so worlds are shared through a global symbol.
const SHARED = Symbol.for('writ.test.worlds');
const shared = globalThis as { [SHARED]?: Map<string, World> };

/** The world with this name. */
export function worldOf(name: string): World {
  shared[SHARED] ??= new Map();
  const world = shared[SHARED].get(name) ?? new World();
  shared[SHARED].set(name, world);
  return world;
}
