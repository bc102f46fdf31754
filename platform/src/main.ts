/** Entry point of `npm start`. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// The program is imported after the cache is enabled, so that later starts load its modules from the compile cache.
// Compiling takes half of the first start.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'));
await import('./start.ts');
