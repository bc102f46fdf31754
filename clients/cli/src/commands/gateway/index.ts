import { type Command, InvalidArgumentError } from 'commander';
import type { CliIo, Exit } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { VerifyOptions } from './verify-gateway.ts';

/** `writ gateway`: conformance of tool gateways (TG-7). */
export function gatewayCommands(program: Command, io: CliIo, done: (exit: Exit) => void): void {
  const gateway = program.command('gateway').description('Conformance of tool gateways.');
  withFormat(gateway.command('verify <address>'))
    .description('Run the conformance suite against a tool gateway.')
    .option(
      '--tables <folder>',
      'folder of another suite: tools.yaml, and files with test cases in tables/',
    )
    .option('--supervisor <address>', 'listener of the simulated supervisor', '127.0.0.1:50051')
    .option('--worker <address>', 'listener of the simulated agent worker', '127.0.0.1:50055')
    .option('--tools <address>', 'listener of the tool provider', '127.0.0.1:50061')
    .option('--wait <seconds>', 'time limit for the gateway to become ready', readSeconds, 60)
    .option(
      '--only <text>',
      'run only the tables (files with test cases) whose name contains the text',
    )
    .option(
      '--restart-command <command>',
      'command that kills the gateway (kill -9) and restarts it; if not set, crash cases are skipped',
    )
    .option('--tls-ca-file <file>', 'CA certificates, for a gateway with mutual TLS')
    .option(
      '--tls-cert-file <file>',
      'certificate of each service; {service} is replaced by its name',
    )
    .option('--tls-key-file <file>', 'key of each service; {service} is replaced by its name')
    .action(async (address: string, options: VerifyOptions) => {
      const { verifyGateway } = await import('./verify-gateway.ts');
      done(await verifyGateway(address, options, io));
    });
}

function readSeconds(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a number of seconds.');
}
