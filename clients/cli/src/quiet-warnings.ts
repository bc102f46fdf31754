/** Matches warnings of Node 22 about experimental features that Writ uses: node:sqlite and TypeScript modules. */
const EXPECTED = /^(SQLite|Type Stripping) is an experimental feature/;

const listeners = process.listeners('warning');
process.removeAllListeners('warning');
process.on('warning', (warning) => {
  if (warning.name === 'ExperimentalWarning' && EXPECTED.test(warning.message)) return;
  for (const listener of listeners) listener(warning);
});
