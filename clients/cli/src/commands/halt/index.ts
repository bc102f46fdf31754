import type { Halt } from '@writ/contracts/writ/control/v1/control_service_pb';
import { newId } from '@writ/kernel';
import type { CommandGroup } from '../../command-group.ts';
import { type DoorOptions, openDoor, withDoor } from '../../door.ts';
import { EXIT } from '../../io.ts';
import { haltLine } from './halt-line.ts';
import { type ScopeOptions, scopeFrom } from './scope.ts';

interface HaltOptions extends DoorOptions, ScopeOptions {
  readonly reason: string;
  readonly endRuns?: boolean;
  readonly requestId?: string;
}

interface ResumeOptions extends DoorOptions {
  readonly requestId?: string;
}

/** `writ halt`, `writ resume` and `writ halts`: the kill switch from a shell (SV-9). */
export const haltCommands: CommandGroup = (program, io, done) => {
  withDoor(program.command('halt'))
    .description('Stop a run, one agent of it, a tenant, or everything.')
    .option('--run <id>', 'a run')
    .option('--agent <instance>', 'one agent of the run that --run names')
    .option('--tenant <tenant>', 'a whole tenant; with --run, the tenant of that run')
    .option('--everything', 'every tenant; needs the role operator')
    .requiredOption('--reason <sentence>', 'why; everybody who is refused sees it')
    .option('--end-runs', 'end the runs instead of parking their agents')
    .option('--request-id <id>', 'repeat an order that was not acknowledged')
    .action(async (options: HaltOptions) => {
      const door = openDoor(options, io);
      const scope = await scopeFrom(options, door);
      const { reason, endRuns = false, requestId = newId('req') } = options;
      try {
        const answer = await door.control.halt({ requestId, scope, reason, endRuns });
        show(answer.halt, io.print);
        done(EXIT.holds);
      } catch (error) {
        if (!isPending(error)) throw error;
        io.warn(error.message);
        io.warn(`Ask again with --request-id ${requestId}.`);
        done(EXIT.fails);
      }
    });

  withDoor(program.command('resume'))
    .argument('<halt-id>', 'the halt to lift; no other is')
    .description('Lift one halt.')
    .option('--request-id <id>', 'repeat an order that was not acknowledged')
    .action(async (haltId: string, { requestId = newId('req'), ...options }: ResumeOptions) => {
      const { halt } = await openDoor(options, io).control.resume({ requestId, haltId });
      show(halt, io.print);
      done(EXIT.holds);
    });

  withDoor(program.command('halts'))
    .description('List halts, newest first.')
    .option('--in-force', 'only those that are not lifted')
    .action(async (options: DoorOptions & { readonly inForce?: boolean }) => {
      const door = openDoor(options, io);
      let pageToken = '';
      do {
        const inForceOnly = options.inForce === true;
        const page = await door.control.listHalts({ inForceOnly, pageToken });
        for (const halt of page.halts) show(halt, io.print);
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      done(EXIT.holds);
    });
};

function show(halt: Halt | undefined, print: (line: string) => void): void {
  if (halt === undefined) return;
  print(haltLine(halt));
  for (const call of halt.inFlight) {
    print(`  still under way: ${call.runId} ${call.agentInstance} ${call.callId} ${call.target}`);
  }
}

function isPending(error: unknown): error is Error & { readonly reason: string } {
  return error instanceof Error && 'reason' in error && error.reason === 'HALT_PENDING';
}
