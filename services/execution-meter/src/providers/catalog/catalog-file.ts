import { ConfigError, WatchedFile } from '@writ/config';
import type { Logger } from '@writ/telemetry';
import type { ExecutionMeterConfig } from '../../config.ts';
import type { Catalog } from '../../domain/catalog/catalog.ts';
import { readCatalog } from './read-catalog.ts';

/**
 * The catalog of models.yaml, reloaded when its file changes: models, prices and tenant caps apply to calls and
 * reservations that begin afterwards. A file with an error is ignored (EM-3).
 */
export class CatalogFile {
  readonly catalog: Catalog;
  readonly #file: WatchedFile;
  readonly #config: ExecutionMeterConfig;
  readonly #log: Logger;

  private constructor(
    catalog: Catalog,
    file: WatchedFile,
    config: ExecutionMeterConfig,
    log: Logger,
  ) {
    this.catalog = catalog;
    this.#file = file;
    this.#config = config;
    this.#log = log;
  }

  /** @throws ConfigError with file, line and the expected value */
  static async open(config: ExecutionMeterConfig, log: Logger): Promise<CatalogFile> {
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
