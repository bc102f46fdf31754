/**
 * `npm run console`: builds the console into clients/console/dist, which the supervisor serves at its public port.
 * `npm install` runs it with `--if-possible`: an installation without development packages has no console, and the
 * platform starts without it.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const isOptional = process.argv.includes('--if-possible');

if (existsSync(join(ROOT, 'node_modules/vite'))) {
  const { build } = await import('vite');
  await build({
    configFile: join(ROOT, 'clients/console/vite.config.ts'),
    logLevel: 'warn',
    // The loader of Node reads TypeScript; no bundled copy of the configuration is written.
    configLoader: 'native',
  });
} else {
  console.error('The console is not built: vite is not installed; run npm install.');
  process.exitCode = isOptional ? 0 : 1;
}
