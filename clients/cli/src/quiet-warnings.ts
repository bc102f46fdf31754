/** Node 22 warns about features that Writ is tested with: node:sqlite, and modules in TypeScript. */
const EXPECTED = /^(SQLite|Type Stripping) is an experimental feature/;

const listeners = process.listeners('warning');
process.removeAllListeners('warning');
process.on('warning', (warning) => {
  if (warning.name === 'ExperimentalWarning' && EXPECTED.test(warning.message)) return;
  for (const listener of listeners) listener(warning);
});
