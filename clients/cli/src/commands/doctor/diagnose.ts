import { checkProject, type Finding, loadProject } from '@writ/platform';
import type { ClientOptions } from '../../client-options.ts';
import { explain } from '../../explain.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';
import { type CheckResult, checkAgentProxy, checkDisk, checkPlatform } from './checks.ts';

/** Options of `writ doctor`. */
export interface DoctorOptions extends ClientOptions, FormatOptions {
  readonly platform: boolean;
}

/** Checks a project and its running platform and prints the findings; fails if a finding is an error (SYS-3). */
export async function diagnose(folder: string, options: DoctorOptions, io: CliIo): Promise<Exit> {
  const checks = [
    await checkFolder(folder, io),
    ...(options.platform ? await checkPlatform(folder, options, io) : []),
    ...(options.platform ? await checkAgentProxy(options, io) : []),
    checkDisk(folder, io),
  ];
  const findings = checks.flatMap((check) => check.findings);
  showData(io, options, { findings: findingsOf(checks) }, () => checks.flatMap(linesOf));
  return findings.some(({ severity }) => severity === 'error') ? EXIT.failure : EXIT.success;
}

async function checkFolder(folder: string, { env }: CliIo): Promise<CheckResult> {
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

function findingsOf(
  checks: readonly CheckResult[],
): readonly (Finding & { readonly check: string })[] {
  return checks.flatMap(({ name, findings }) =>
    findings.map((finding) => ({ check: name, ...finding })),
  );
}

function linesOf({ name, about, findings }: CheckResult): string[] {
  if (findings.length === 0) return [`ok        ${name}: ${about}`];
  return findings.map(({ severity, text }) => `${severity.padEnd(9)} ${text}`);
}
