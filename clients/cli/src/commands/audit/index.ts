import type { Command } from 'commander';
import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CliIo, Exit } from '../../io.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';
import { limitOf } from '../../output/pages.ts';
import { timeOf } from '../../output/time-option.ts';
import type { ExportOptions } from './export-chain.ts';
import type { KeysOptions } from './print-keys.ts';
import type { ListOptions } from './read-records.ts';
import type { VerifyOptions } from './verify-file.ts';

/** `writ audit`: lists, exports and verifies the audit chain (SV-8). */
export function auditCommands(program: Command, io: CliIo, done: (exit: Exit) => void): void {
  const audit = program.command('audit').description('Audit chain of a tenant.');
  withFormat(withClientOptions(audit.command('list')))
    .description('List records of the tenant, in the order of the chain.')
    .option('--run <id>', 'only records of this run')
    .option('--agent <instance>', 'only records of this agent')
    .option('--kind <kind>', 'only records of this kind, such as approval')
    .option('--since <time>', 'at or after this time, such as 2026-11-01 (UTC)', timeOf)
    .option('--until <time>', 'before this time', timeOf)
    .option('--limit <count>', 'maximum number of records to list', limitOf, 100)
    .action(async (options: ListOptions) => {
      const { listRecords } = await import('./read-records.ts');
      done(await listRecords(options, io));
    });
  withFormat(withClientOptions(audit.command('show <record>')))
    .description('Show all fields of a record.')
    .action(async (record: string, options: ClientOptions & FormatOptions) => {
      const { showRecord } = await import('./read-records.ts');
      done(await showRecord(record, options, io));
    });
  withClientOptions(audit.command('export [file]'))
    .description('Export the chain with its checkpoints and a signed head, as JSON lines.')
    .option('--after <record>', 'export only records after this one', '0')
    .action(async (file: string | undefined, options: ExportOptions) => {
      const { exportChain } = await import('./export-chain.ts');
      done(await exportChain(file, options, io));
    });
  withFormat(audit.command('verify <file>'))
    .description('Verify an export offline and report the first error.')
    .option('--keys <file>', "the supervisor's public keys, as `writ audit keys` prints them")
    .option('--key <file>', 'alias of --keys for a single key')
    .option('--tenant <tenant>', 'expected tenant')
    .option('--after <record>', 'record number that was passed to --after for the export', '0')
    .option('--continues <file>', 'an earlier export that this one must continue')
    .option(
      '--checkpoint <file>',
      'file with published checkpoints; the chain must contain the last one of the tenant',
    )
    .action(async (file: string, options: VerifyOptions) => {
      const { verifyFile } = await import('./verify-file.ts');
      done(await verifyFile(file, options, io));
    });
  audit
    .command('keys')
    .description("Print the supervisor's public keys, including retired keys.")
    .option(
      '--supervisor <address>',
      "the supervisor's internal address (WRIT_SUPERVISOR_ADDRESS, 127.0.0.1:50051)",
    )
    .action(async (options: KeysOptions) => {
      const { printKeys } = await import('./print-keys.ts');
      done(await printKeys(options, io));
    });
}
