import type { ToolContext, ToolFunction, Tools } from '@writ/kernel';
import { worldOf } from '../world.ts';

/** Creates the tools that the variable TOOLS names; the world that the variable WORLD names sets their behavior. */
export async function createTools({ variables }: ToolContext): Promise<Tools> {
  const world = worldOf(variables.WORLD ?? '');
  const toolOf =
    (name: string): ToolFunction =>
    async (args, call) =>
      (await world.run(name, args, call)) as never;
  const names = (variables.TOOLS ?? '').split(',');
  return Object.fromEntries(names.map((name) => [name, toolOf(name)]));
}
