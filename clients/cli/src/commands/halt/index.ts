import type { Halt } from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { haltLine } from './halt-line.ts';
import { type ScopeOptions, scopeFrom } from './scope.ts';

interface HaltOptions extends ClientOptions, ScopeOptions {
  readonly reason: string;
  readonly endRuns?: boolean;
  readonly requestId?: string;
}

interface ResumeOptions extends ClientOptions {
  readonly requestId?: string;
}

/** `writ halt`, `writ resume` and `writ halts`: the kill switch (SV-9). */
export const haltCommands: CommandGroup = (program, io, done) => {
  withClientOptions(program.command('halt'))
    .description('Stop a run, one agent of it, a tenant, or everything.')
    .option('--run <id>', 'a run')
    .option('--agent <instance>', 'one agent of the run that --run names')
    .option('--tenant <tenant>', 'a whole tenant; with --run, the tenant of that run')
    .option('--everything', 'every tenant; needs the role operator')
    .requiredOption('--reason <sentence>', 'the reason, shown to every rejected caller')
    .option('--end-runs', 'end the runs instead of parking their agents')
    .option('--request-id <id>', 'repeat a request that was not acknowledged')
    .action(async (options: HaltOptions) => {
      const client = openClient(options, io);
      const scope = await scopeFrom(options, client);
      const { reason, endRuns = false, requestId = newId('req') } = options;
      try {
        const answer = await client.control.halt({ requestId, scope, reason, endRuns });
        show(answer.halt, io.print);
        done(EXIT.success);
      } catch (error) {
        if (!isPending(error)) throw error;
        io.warn(error.message);
        io.warn(`Retry with --request-id ${requestId}.`);
        done(EXIT.failure);
      }
    });

  withClientOptions(program.command('resume'))
    .argument('<halt-id>', 'the halt to lift')
    .description('Lift one halt.')
    .option('--request-id <id>', 'repeat a request that was not acknowledged')
    .action(async (haltId: string, { requestId = newId('req'), ...options }: ResumeOptions) => {
      const { halt } = await openClient(options, io).control.resume({ requestId, haltId });
      show(halt, io.print);
      done(EXIT.success);
    });

  withClientOptions(program.command('halts'))
    .description('List halts, newest first.')
    .option('--in-force', 'only halts in force')
    .action(async (options: ClientOptions & { readonly inForce?: boolean }) => {
      const client = openClient(options, io);
      let pageToken = '';
      do {
        const inForceOnly = options.inForce === true;
        const page = await client.control.listHalts({ inForceOnly, pageToken });
        for (const halt of page.halts) show(halt, io.print);
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      done(EXIT.success);
    });
};

function show(halt: Halt | undefined, print: (line: string) => void): void {
  if (halt === undefined) return;
  print(haltLine(halt));
  for (const call of halt.inFlight) {
    print(`  still in flight: ${call.runId} ${call.agentInstance} ${call.callId} ${call.target}`);
  }
}

function isPending(error: unknown): error is Error & { readonly reason: string } {
  return error instanceof Error && 'reason' in error && error.reason === 'HALT_PENDING';
}
