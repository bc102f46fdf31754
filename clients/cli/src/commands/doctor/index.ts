import { checkProject, type Finding, loadProject } from '@writ/platform';
import type { Command } from 'commander';
import { type ClientOptions, withClientOptions } from '../../client.ts';
import { explain } from '../../explain.ts';
import { type CliIo, type CommandGroup, EXIT } from '../../io.ts';
import { type FormatOptions, showData, withFormat } from '../../output/format.ts';
import { checkAgentProxy, checkDisk, checkPlatform, type Probe } from './probes.ts';

interface DoctorOptions extends ClientOptions, FormatOptions {
  readonly platform: boolean;
}

/** `writ doctor`: what is wrong with a project and the platform that runs it (SYS-3). */
export const doctorCommand: CommandGroup = (program, io, done) => {
  withFormat(withClientOptions(program.command('doctor') as Command))
    .argument('[folder]', 'the project', '.')
    .description(
      'Check the files of a project, the references between them, and the running platform; exit code 1 for an error.',
    )
    .option('--no-platform', 'check the files only')
    .action(async (folder: string, options: DoctorOptions) => {
      const probes = [
        await checkFolder(folder, io),
        ...(options.platform ? await checkPlatform(folder, options, io) : []),
        ...(options.platform ? await checkAgentProxy(io) : []),
        checkDisk(folder, io),
      ];
      const findings = probes.flatMap((probe) => probe.findings);
      showData(io, options, { findings: findingsOf(probes) }, () => probes.flatMap(linesOf));
      done(findings.some(({ severity }) => severity === 'error') ? EXIT.failure : EXIT.success);
    });
};

async function checkFolder(folder: string, { env }: CliIo): Promise<Probe> {
  try {
    const project = loadProject(folder);
    return {
      name: 'files',
      about: `${project.folder}: agents, tools, policy, models`,
      findings: await checkProject(project, env),
    };
  } catch (error) {
    return {
      name: 'files',
      about: folder,
      findings: [{ severity: 'error', text: explain(error) }],
    };
  }
}

function findingsOf(probes: readonly Probe[]): readonly (Finding & { readonly check: string })[] {
  return probes.flatMap(({ name, findings }) =>
    findings.map((finding) => ({ check: name, ...finding })),
  );
}

function linesOf({ name, about, findings }: Probe): string[] {
  if (findings.length === 0) return [`ok        ${name}: ${about}`];
  return findings.map(({ severity, text }) => `${severity.padEnd(9)} ${text}`);
}
