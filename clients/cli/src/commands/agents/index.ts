import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';

/** `writ agents`: the agents that clients can start (PE-2). */
export const agentCommands: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('agents')))
    .description('List the agents that can be started.')
    .action(async (options: ClientOptions & FormatOptions) => {
      const { listAgents } = await import('./list-agents.ts');
      done(await listAgents(options, io));
    });
};
