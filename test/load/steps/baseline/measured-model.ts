import { join } from 'node:path';
import type { ModelEntry } from '../../../../services/execution-meter/src/domain/catalog/catalog.ts';
import { readCatalog } from '../../../../services/execution-meter/src/providers/catalog/read-catalog.ts';

/** Reads the model of the measured platform from its models.yaml in `folder`. */
export function measuredModel(folder: string): ModelEntry {
  const [model] = readCatalog(join(folder, 'models.yaml'), {}).catalog.list(undefined);
  if (model === undefined) throw new Error('The catalog of the measured platform is empty.');
  return model;
}
