/** Fails if `npm install` has changed package-lock.json. Changes of optional platform-specific packages are ignored. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { changedPackages } from './lock-file.ts';

const committed = execFileSync('git', ['show', 'HEAD:package-lock.json'], {
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const changed = changedPackages(committed, readFileSync('package-lock.json', 'utf8'));
if (changed.length > 0) {
  const names = changed.map((name) => name || 'the root package').join(', ');
  console.error(`package-lock.json is not current: ${names}. Run npm install and commit it.`);
  process.exitCode = 1;
}
