import { unwatchFile, watchFile } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { ConfigError, type YamlInput } from '@writ/config';
import { canonicalDigest, compileContract, isWritError } from '@writ/kernel';
import type { Registry } from '../domain/registry.ts';
import { type OpenSource, openSource, type SourceParts } from './open-source.ts';
import type { OfferedTools } from './source.ts';
import { loadToolsFile, type SourceDeclaration, type ToolsFile } from './tools-file.ts';

/** A snapshot of the tools of a gateway and their sources. */
export interface ToolsInForce {
  readonly registry: Registry;
  /** The source with this name; undefined when it does not exist. */
  find(source: string): OpenSource | undefined;
}

interface Opened {
  readonly source: OpenSource;
  /**
   * Digest of the origin (module, address, server or egress rules); a source is reopened when this digest changes.
   * Changed limits are applied to the open source.
   */
  readonly identity: string;
}

/**
 * The tools that tools.yaml declares and the sources offer, reloaded while the gateway runs (TG-6). An invalid file
 * changes nothing. A source with an unchanged origin stays open, even when its limits, its tools or the content of its
 * module change; a replaced or removed source is closed when its last running or queued call has ended.
 * {@link LiveTools.now} is an immutable snapshot.
 */
export class LiveTools {
  readonly #input: YamlInput;
  readonly #parts: SourceParts;
  readonly #offers = new Map<string, OfferedTools>();
  readonly #retired = new Set<OpenSource>();
  #opened: ReadonlyMap<string, Opened> = new Map();
  #file: ToolsFile;
  #now: ToolsInForce;
  #queue: Promise<void> = Promise.resolve();
  #unwatch: () => void = () => undefined;
  #closed = false;

  /**
   * Reads tools.yaml and opens every source that it declares.
   * @throws ConfigError listing every problem with its line and column, or naming the module that
   *   cannot be used; sources that were opened are closed
   */
  static async open(input: YamlInput, parts: SourceParts): Promise<LiveTools> {
    const file = loadToolsFile(input, parts.variables);
    const live = new LiveTools(input, parts, file);
    const applied = live.#apply(file);
    // Tools that a source offers while the file is being applied are queued until it is applied; no source is watched
    // before this assignment.
    live.#queue = applied.catch(() => undefined);
    await applied;
    return live;
  }

  private constructor(input: YamlInput, parts: SourceParts, file: ToolsFile) {
    this.#input = input;
    this.#parts = parts;
    this.#file = file;
    this.#now = { registry: file.registry, find: () => undefined };
  }

  /** The current snapshot. */
  get now(): ToolsInForce {
    return this.#now;
  }

  /** Reloads the file when it changes, which is checked every `intervalMs`; 0 disables reloading. */
  watch(intervalMs: number): void {
    const file = this.#input;
    if (typeof file !== 'string' || intervalMs === 0) return;
    const changed = () => void this.reload();
    watchFile(file, { interval: intervalMs, persistent: false }, changed);
    this.#unwatch = () => unwatchFile(file, changed);
  }

  /** Reloads tools.yaml. An invalid file is logged with the positions of its errors and changes nothing. */
  reload(): Promise<void> {
    const { variables, telemetry } = this.#parts;
    return this.#enqueue(async () => {
      try {
        await this.#apply(loadToolsFile(this.#input, variables));
      } catch (error) {
        const problems = error instanceof ConfigError ? error.problems : [String(error)];
        telemetry.log.error(
          { problems, registry_version: this.#now.registry.version },
          'reloaded tools file is invalid; keeping the previous tools',
        );
      }
    });
  }

  /** Closes every source, even if it has calls in flight. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unwatch();
    await this.#queue;
    const open = Array.from(this.#opened.values(), ({ source }) => source);
    const all = [...open, ...this.#retired];
    this.#retired.clear();
    await Promise.all(all.map((source) => source.close()));
  }

  /** Applies a file: opens its sources, then replaces the snapshot. */
  async #apply(file: ToolsFile): Promise<void> {
    const before = this.#opened;
    const { opened, fresh } = await this.#open(file.sources);
    const offers = await Promise.all(fresh.map(([name, source]) => this.#list(name, source)));
    this.#file = file;
    this.#opened = opened;
    for (const { name, maxInFlight, maxQueued } of file.sources) {
      opened.get(name)?.source.slots.resize({ maxInFlight, maxQueued });
    }
    for (const name of before.keys()) if (!opened.has(name)) this.#offers.delete(name);
    for (const [index, [name]] of fresh.entries()) this.#offers.set(name, offers[index] ?? {});
    this.#publish(file.warnings);
    for (const [name, { source }] of before) {
      if (opened.get(name)?.source !== source) this.#retire(source);
    }
  }

  /** Returns the declared sources: an open source is reused if its origin is unchanged; other sources are opened. */
  async #open(declarations: readonly SourceDeclaration[]) {
    const opened = new Map<string, Opened>();
    const fresh: [string, OpenSource][] = [];
    try {
      for (const declaration of declarations) {
        const { name, origin } = declaration;
        const identity = canonicalDigest(origin);
        const known = this.#opened.get(name);
        if (known?.identity === identity) {
          rejectMissing(declaration, known.source);
          opened.set(name, known);
          continue;
        }
        const source = await openSource(declaration, this.#parts);
        fresh.push([name, source]);
        opened.set(name, { source, identity });
      }
    } catch (error) {
      await Promise.all(fresh.map(([, source]) => source.close()));
      throw error;
    }
    return { opened, fresh };
  }

  /** Watches a new source and lists its tools. */
  async #list(name: string, source: OpenSource): Promise<OfferedTools> {
    source.watch?.(
      (offered) => void this.#enqueue(async () => this.#update(name, source, offered)),
    );
    try {
      const offered = (await source.offer?.()) ?? {};
      await precompile(offered);
      return offered;
    } catch (error) {
      const error_type = error instanceof Error ? error.name : '';
      const { log } = this.#parts.telemetry;
      log.warn({ source: name, error_type }, 'failed to list the tools of a source');
      return {};
    }
  }

  async #update(name: string, source: OpenSource, offered: OfferedTools): Promise<void> {
    await precompile(offered);
    if (this.#opened.get(name)?.source !== source) return;
    this.#offers.set(name, offered);
    this.#publish();
  }

  #publish(fileWarnings: readonly string[] = []): void {
    const { log } = this.#parts.telemetry;
    const { registry, warnings } = this.#file.complete(this.#offers);
    const opened = this.#opened;
    const isChanged = registry.version !== this.#now.registry.version;
    this.#now = { registry, find: (name) => opened.get(name)?.source };
    for (const warning of [...fileWarnings, ...warnings]) log.warn(warning);
    const figures = { registry_version: registry.version, tools: registry.tools.size };
    if (isChanged) log.info(figures, 'tool catalog changed');
  }

  #retire(source: OpenSource): void {
    this.#retired.add(source);
    const close = async (): Promise<void> => {
      await source.slots.idle();
      if (this.#retired.delete(source)) await source.close();
    };
    close().catch((error: unknown) => this.#warn(error, 'failed to close replaced source'));
  }

  #warn(error: unknown, what: string): void {
    const error_type = error instanceof Error ? error.name : '';
    this.#parts.telemetry.log.warn({ error_type }, what);
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue
      .then(() => (this.#closed ? undefined : work()))
      .catch((error: unknown) =>
        this.#warn(error, 'failed to apply the offered tools of a source'),
      );
    return this.#queue;
  }
}

/**
 * Compiles the schemas of offered tools into the cache of compileContract, and yields to the event loop after each
 * (BD-1).
 */
async function precompile(offered: OfferedTools): Promise<void> {
  for (const { inputSchema } of Object.values(offered)) {
    if (inputSchema === undefined) continue;
    try {
      compileContract(inputSchema);
    } catch (error) {
      // The invalid schema is reported when the registry is built.
      if (!isWritError(error)) throw error;
    }
    await setImmediate();
  }
}

/** Rejects a declaration of a tool that the open module does not have. */
function rejectMissing({ name, tools, place }: SourceDeclaration, source: OpenSource): void {
  const missing = source.lacks?.(tools) ?? [];
  if (missing.length === 0) return;
  throw new ConfigError(place, [
    `${place}: the source ${name} has no function for ${missing.join(', ')}.`,
  ]);
}
