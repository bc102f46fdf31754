#!/usr/bin/env node
/** `npm create writ my-agents`: the command `writ init my-agents` of the package that a new project depends on. */
process.argv.splice(2, 0, 'init');
await import('@writ/cli/main');
