import { unwatchFile, watchFile } from 'node:fs';
import { ConfigError, type YamlInput } from '@writ/config';
import { canonicalDigest } from '@writ/kernel';
import type { Registry } from '../domain/registry.ts';
import type { OfferedTool } from './offered-tool.ts';
import { type OpenSource, openSource, type SourceParts } from './open-source.ts';
import { loadToolsFile, type SourceDeclaration, type ToolsFile } from './tools-file.ts';

/** The tools of a gateway at one moment: what can be called, and where it runs. */
export interface ToolsInForce {
  readonly registry: Registry;
  /** The source of this name; undefined when there is none. */
  find(source: string): OpenSource | undefined;
}

type Offered = Readonly<Record<string, OfferedTool>>;

interface Opened {
  readonly source: OpenSource;
  /** Of what it was opened with: another one needs another source. */
  readonly identity: string;
}

/**
 * The tools of a gateway as tools.yaml and the sources say now (TG-6). A document with an error
 * changes nothing; a source whose declaration stays the same stays open; one that is replaced or gone
 * is closed when its last call has ended. Whoever took {@link LiveTools.now} has all of one moment.
 */
export class LiveTools {
  readonly #input: YamlInput;
  readonly #parts: SourceParts;
  readonly #offers = new Map<string, Offered>();
  readonly #retired = new Set<OpenSource>();
  #opened: ReadonlyMap<string, Opened> = new Map();
  #file: ToolsFile;
  #now: ToolsInForce;
  #turn: Promise<void> = Promise.resolve();
  #unwatch: () => void = () => undefined;
  #closed = false;

  /**
   * Reads tools.yaml and opens every source that it declares.
   * @throws ConfigError listing every problem with its line and column, or naming the module that
   *   cannot be used; what was opened before is closed
   */
  static async open(input: YamlInput, parts: SourceParts): Promise<LiveTools> {
    const file = loadToolsFile(input, parts.variables);
    const live = new LiveTools(input, parts, file);
    await live.#take(file);
    return live;
  }

  private constructor(input: YamlInput, parts: SourceParts, file: ToolsFile) {
    this.#input = input;
    this.#parts = parts;
    this.#file = file;
    this.#now = { registry: file.registry, find: () => undefined };
  }

  /** What is in force now. */
  get now(): ToolsInForce {
    return this.#now;
  }

  /** Takes every change of the file from now on; looks every `intervalMs`. Only a file can change. */
  watch(intervalMs: number): void {
    const file = this.#input;
    if (typeof file !== 'string' || intervalMs === 0) return;
    const changed = () => void this.reload();
    watchFile(file, { interval: intervalMs, persistent: false }, changed);
    this.#unwatch = () => unwatchFile(file, changed);
  }

  /** Reads tools.yaml again. What cannot be used is logged with its place, and nothing changes. */
  reload(): Promise<void> {
    const { variables, telemetry } = this.#parts;
    return this.#inTurn(async () => {
      try {
        await this.#take(loadToolsFile(this.#input, variables));
      } catch (error) {
        const problems = error instanceof ConfigError ? error.problems : [String(error)];
        telemetry.log.error(
          { problems, registry_version: this.#now.registry.version },
          'The tools file was changed and cannot be used; the tools stay as they were.',
        );
      }
    });
  }

  /** Closes every source, whatever runs there. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#unwatch();
    await this.#turn;
    const open = Array.from(this.#opened.values(), ({ source }) => source);
    const all = [...open, ...this.#retired];
    this.#retired.clear();
    await Promise.all(all.map((source) => source.close()));
  }

  /** Takes a document whole: its sources first, then what is in force, at once. */
  async #take(file: ToolsFile): Promise<void> {
    const before = this.#opened;
    const { opened, fresh } = await this.#open(file.sources);
    const offers = await Promise.all(fresh.map(([name, source]) => this.#ask(name, source)));
    this.#file = file;
    this.#opened = opened;
    for (const { name, maxInFlight, maxQueued } of file.sources) {
      opened.get(name)?.source.slots.resize({ maxInFlight, maxQueued });
    }
    for (const name of before.keys()) if (!opened.has(name)) this.#offers.delete(name);
    for (const [index, [name]] of fresh.entries()) this.#offers.set(name, offers[index] ?? {});
    this.#putInForce(file.warnings);
    for (const [name, { source }] of before) {
      if (opened.get(name)?.source !== source) this.#retire(source);
    }
  }

  /** What the declarations need: sources that are open as they are declared, and new ones. */
  async #open(declarations: readonly SourceDeclaration[]) {
    const opened = new Map<string, Opened>();
    const fresh: [string, OpenSource][] = [];
    try {
      for (const declaration of declarations) {
        const { name, origin } = declaration;
        const identity = canonicalDigest(origin);
        const known = this.#opened.get(name);
        if (known?.identity === identity) {
          refuseLacking(declaration, known.source);
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

  /** Listens to a new source, and asks what it has. */
  async #ask(name: string, source: OpenSource): Promise<Offered> {
    source.watch?.((offered) => void this.#inTurn(async () => this.#hear(name, source, offered)));
    try {
      return (await source.offer?.()) ?? {};
    } catch (error) {
      const error_type = error instanceof Error ? error.name : '';
      const { log } = this.#parts.telemetry;
      log.warn({ source: name, error_type }, 'A source does not say what it has.');
      return {};
    }
  }

  #hear(name: string, source: OpenSource, offered: Offered): void {
    if (this.#opened.get(name)?.source !== source) return;
    this.#offers.set(name, offered);
    this.#putInForce();
  }

  #putInForce(fileWarnings: readonly string[] = []): void {
    const { log } = this.#parts.telemetry;
    const { registry, warnings } = this.#file.complete(this.#offers);
    const opened = this.#opened;
    const isOther = registry.version !== this.#now.registry.version;
    this.#now = { registry, find: (name) => opened.get(name)?.source };
    for (const warning of [...fileWarnings, ...warnings]) log.warn(warning);
    const figures = { registry_version: registry.version, tools: registry.tools.size };
    if (isOther) log.info(figures, 'The tools are others now.');
  }

  #retire(source: OpenSource): void {
    this.#retired.add(source);
    const end = async (): Promise<void> => {
      await source.slots.idle();
      if (this.#retired.delete(source)) await source.close();
    };
    end().catch((error: unknown) => this.#warn(error, 'A source that was replaced did not close.'));
  }

  #warn(error: unknown, what: string): void {
    const error_type = error instanceof Error ? error.name : '';
    this.#parts.telemetry.log.warn({ error_type }, what);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn
      .then(() => (this.#closed ? undefined : work()))
      .catch((error: unknown) => this.#warn(error, 'What a source says it has was not taken.'));
    return this.#turn;
  }
}

/** A module that is open may lack a tool that a later document declares. */
function refuseLacking({ name, tools, place }: SourceDeclaration, source: OpenSource): void {
  const missing = source.lacks?.(tools) ?? [];
  if (missing.length === 0) return;
  throw new ConfigError(place, [
    `${place}: the source ${name} has no function for ${missing.join(', ')}.`,
  ]);
}
