/** Writes every generated page of the documentation; `--check` only compares. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { apiPages } from './api-pages.ts';
import { COMMANDS_PAGE, commandsPage } from './commands-page.ts';
import { generatedFiles } from './configuration-pages.ts';
import { readContracts } from './contracts.ts';
import * as metrics from './metrics-page.ts';
import * as reasons from './reason-codes-page.ts';

/** Returns every generated page with its content. */
export function generatedPages(): ReadonlyMap<string, string> {
  const pages = new Map([...generatedFiles(), ...apiPages(readContracts())]);
  pages.set(COMMANDS_PAGE, commandsPage());
  for (const { PAGE, withTable } of [metrics, reasons]) {
    pages.set(PAGE, withTable(readFileSync(PAGE, 'utf8')));
  }
  return pages;
}

if (import.meta.main) {
  const isCheck = process.argv.includes('--check');
  for (const [file, content] of generatedPages()) {
    if (!isCheck) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
    } else if (readFileSync(file, 'utf8') !== content) {
      console.error(`${file} differs from the code; run npm run pages.`);
      process.exitCode = 1;
    }
  }
}
