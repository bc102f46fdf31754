import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';

/** `writ tools`: lists the tools that the gateway registers for the tenant; `-o json` includes their schemas (PE-2). */
export const toolCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('tools')))
    .description(
      'List the tools with their arguments, side effects and risk; -o json has the schemas.',
    )
    .action(async (options: ClientOptions & FormatOptions) => {
      const { listTools } = await import('./list-tools.ts');
      done(await listTools(options, io));
    });
};
