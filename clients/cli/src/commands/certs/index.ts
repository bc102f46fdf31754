import { Option } from 'commander';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import { type CertsOptions, DEFAULT_DAYS, STEPS } from './options.ts';

/** `writ certs`: a development CA and the certificates of the services (SYS-6). */
export const certsCommands: CommandGroup = (program, io, done) => {
  withFormat(program.command('certs'))
    .argument('<folder>', 'the folder of ca.crt, ca.key, <service>.crt and <service>.key')
    .description(
      'Create a development CA, and a certificate and key for each service, readable only by their owner.',
    )
    .option('--renew', 'issue new certificates with the existing CA')
    .addOption(
      new Option('--replace-ca <step>', 'rotate the CA, step by step')
        .choices(STEPS)
        .conflicts('renew'),
    )
    .option(
      '--trust-domain <name>',
      'SPIFFE trust domain; default: the trust domain of the existing CA, or writ.local',
    )
    .option('--dns <name...>', 'additional host names for every certificate')
    .option('--ip <address...>', 'additional IP addresses for every certificate')
    .option(
      '--also <name...>',
      'names of additional certificates that are not service certificates, such as edge or nats',
    )
    .option('--days <number>', 'lifetime of certificates in days', DEFAULT_DAYS)
    .option('--ca-days <number>', 'lifetime of a new CA in days', '365')
    .action(async (dir: string, options: CertsOptions) => {
      const { writeCertificates } = await import('./write-certificates.ts');
      done(await writeCertificates(dir, options, io));
    });
};
