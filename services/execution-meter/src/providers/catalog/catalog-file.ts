import { ConfigError, WatchedFile, type YamlInput } from '@writ/config';
import type { Logger } from '@writ/telemetry';
import type { Catalog } from '../../domain/catalog/catalog.ts';
import type { Variables } from '../../domain/catalog/variables.ts';
import type { ModelSettings } from './catalog-schema.ts';
import { readCatalog } from './read-catalog.ts';

/** Sources of the catalog. */
export interface CatalogSource {
  readonly catalog: {
    readonly file: YamlInput;
    /** Settings by alias that override the settings of the file or add aliases. */
    readonly overrides?: Readonly<Record<string, ModelSettings>>;
  };
  /**
   * Values of the `${NAME}` references and key variables of the catalog. Contains secrets: never
   * logged.
   */
  readonly variables: Variables;
}

/**
 * The catalog of models.yaml, reloaded when its file changes. Changed models and prices apply to calls that begin
 * afterwards; changed tenant caps apply to every later booking, including later attempts and settlements of calls in
 * flight. A file with an error is ignored (EM-3).
 */
export class CatalogFile {
  readonly catalog: Catalog;
  readonly #file: WatchedFile;
  readonly #config: CatalogSource;
  readonly #log: Logger;

  private constructor(catalog: Catalog, file: WatchedFile, config: CatalogSource, log: Logger) {
    this.catalog = catalog;
    this.#file = file;
    this.#config = config;
    this.#log = log;
  }

  /**
   * Reads the catalog for the first time.
   * @throws ConfigError with file, line and the expected value
   */
  static async open(config: CatalogSource, log: Logger): Promise<CatalogFile> {
    const file = new WatchedFile(config.catalog.file);
    const { catalog, warnings } = readCatalog(
      await file.read(),
      config.variables,
      config.catalog.overrides,
    );
    for (const warning of warnings) log.warn(warning);
    return new CatalogFile(catalog, file, config, log);
  }

  /** Reloads the file if it changed; logs errors with file, line and column. */
  async look(): Promise<void> {
    try {
      const changed = await this.#file.changed();
      if (changed === undefined) return;
      const { variables, catalog } = this.#config;
      const next = readCatalog(changed, variables, catalog.overrides);
      for (const warning of next.warnings) this.#log.warn(warning);
      this.catalog.replaceBy(next.catalog);
      this.#log.info('models file reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#log.error(
        { err: error },
        'models file is invalid; keeping the previous models and caps',
      );
    }
  }
}
