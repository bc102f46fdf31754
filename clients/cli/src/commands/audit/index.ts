import type { Command } from 'commander';
import { withDoor } from '../../door.ts';
import type { CliIo, Exit } from '../../io.ts';
import type { ExportOptions } from './export-chain.ts';
import type { KeysOptions } from './print-keys.ts';
import type { VerifyOptions } from './verify-file.ts';

/** `writ audit`: what was proposed, decided, executed and how it ended, and the proof of it (SV-8). */
export function auditCommands(program: Command, io: CliIo, done: (exit: Exit) => void): void {
  const audit = program.command('audit').description('the audit record of a tenant (SV-8)');
  // What calls gRPC and checks signatures takes half a second to load, and no other command needs it.
  withDoor(audit.command('export [file]'))
    .description('writes the chain with its checkpoints and a signed head, as JSON lines')
    .option('--after <record>', 'only what comes after this record', '0')
    .action(async (file: string | undefined, options: ExportOptions) => {
      const { exportChain } = await import('./export-chain.ts');
      done(await exportChain(file, options, io));
    });
  audit
    .command('verify <file>')
    .description('checks an export offline and says the first broken place')
    .option('--keys <file>', "the supervisor's public keys, as `writ audit keys` prints them")
    .option('--key <file>', 'the same, for a single key')
    .option('--tenant <tenant>', 'whose chain it must be')
    .option('--after <record>', 'the record after which the export begins', '0')
    .option('--continues <file>', 'an earlier export, of which nothing may have changed since')
    .action(async (file: string, options: VerifyOptions) => {
      const { verifyFile } = await import('./verify-file.ts');
      done(await verifyFile(file, options, io));
    });
  audit
    .command('keys')
    .description("prints the supervisor's public keys, those that it has retired as well")
    .option(
      '--supervisor <address>',
      "the supervisor's internal port (WRIT_SUPERVISOR_ADDRESS, 127.0.0.1:50051)",
    )
    .action(async (options: KeysOptions) => {
      const { printKeys } = await import('./print-keys.ts');
      done(await printKeys(options, io));
    });
}
