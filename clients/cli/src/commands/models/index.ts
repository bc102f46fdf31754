import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';

/** `writ models`: the models that agents can use, with their prices (PE-2). */
export const modelCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('models')))
    .description('List the models that can be used, with their prices.')
    .action(async (options: ClientOptions & FormatOptions) => {
      const { listModels } = await import('./list-models.ts');
      done(await listModels(options, io));
    });
};
