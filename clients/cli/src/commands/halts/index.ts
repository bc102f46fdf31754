import { withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { CreateOptions, LiftOptions } from './change-halts.ts';
import type { ListOptions } from './list-halts.ts';

/** `writ halts`: the kill switch (SV-9). */
export const haltCommands: CommandGroup = (program, io, done) => {
  const halts = program.command('halts').description('Halts of runs, agents and tenants.');

  withFormat(withClientOptions(halts.command('create')))
    .description('Stop a run, one agent of it, a tenant, or everything.')
    .option('--run <id>', 'a run')
    .option('--agent <instance>', 'one agent of the run that --run names')
    .option('--tenant <tenant>', 'a whole tenant; with --run, the tenant of that run')
    .option('--everything', 'every tenant; needs the role operator')
    .requiredOption('--reason <sentence>', 'the reason, shown to every rejected caller')
    .option('--end-runs', 'end the runs instead of parking their agents')
    .option('--request-id <id>', 'repeat a request that was not acknowledged')
    .action(async (options: CreateOptions) => {
      const { createHalt } = await import('./change-halts.ts');
      done(await createHalt(options, io));
    });

  withFormat(withClientOptions(halts.command('lift')))
    .argument('<halt-id>', 'the halt to lift')
    .description('Lift one halt.')
    .option('--request-id <id>', 'repeat a request that was not acknowledged')
    .action(async (haltId: string, options: LiftOptions) => {
      const { liftHalt } = await import('./change-halts.ts');
      done(await liftHalt(haltId, options, io));
    });

  withFormat(withClientOptions(halts.command('list')))
    .description('List halts, newest first.')
    .option('--in-force', 'only halts in force')
    .action(async (options: ListOptions) => {
      const { listHalts } = await import('./list-halts.ts');
      done(await listHalts(options, io));
    });
};
