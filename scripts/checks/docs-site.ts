/**
 * Builds the documentation site and checks that its pages load nothing from the network. The build fails for a link to
 * a page that does not exist.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandResult, runCommand } from '../run-command.ts';

const SITE = 'dist/docs';

/**
 * Matches the URLs of resources that a browser loads automatically (scripts, styles, fonts, images and frames), but not
 * the targets of links.
 */
const LOADED =
  /<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="((?:https?:)?\/\/[^"]+)"|(?:@import\s+|url\()["']?((?:https?:)?\/\/[^"')]+)/g;

/** Returns the addresses outside the site that a page or style loads. */
export function externalResources(text: string): readonly string[] {
  return [...text.matchAll(LOADED)].map(([, attribute, style]) => attribute ?? style ?? '');
}

/**
 * Builds the site into dist/docs.
 *
 * @returns code 1 with the dead links, or with the files that load resources from the network
 */
export async function checkDocsSite(): Promise<CommandResult> {
  const built = await runCommand('npm', 'run', '-s', 'docs');
  if (built.code !== 0) return built;
  const pages = globSync('**/*.{html,css}', { cwd: SITE });
  const external = pages.flatMap((page) =>
    externalResources(readFileSync(join(SITE, page), 'utf8')).map(
      (address) => `${page} loads ${address}`,
    ),
  );
  const problems = pages.length > 0 ? external : [`${SITE} contains no page`];
  return { code: problems.length > 0 ? 1 : 0, output: problems.join('\n') };
}
