import { checkFiles } from '../check/check-files.ts';
import type { Finding } from '../check/findings.ts';
import { isSimulated, providerVariables, simulatorVariables } from '../model-source.ts';
import type { Project } from './load-project.ts';

/**
 * Checks the files of a project and imports its modules. Paths in the findings are relative to the project folder.
 * `writ dev` and `writ doctor` use it.
 */
export async function checkProject(
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Finding[]> {
  const variables = { ...project.env, ...env };
  const findings = await checkFiles(project.files, {
    variables: { ...variables, ...modelVariables(project, variables) },
    importModules: true,
    createTools: true,
  });
  const from = `${project.folder}/`;
  return findings.map(({ severity, text }) => ({ severity, text: text.replaceAll(from, '') }));
}

/** The variables that openProject sets for the models. */
function modelVariables(
  { script, files }: Project,
  variables: NodeJS.ProcessEnv,
): Readonly<Record<string, string>> {
  if (variables.OPENAI_API_KEY || variables.OPENAI_BASE_URL) return providerVariables(variables);
  return script !== '' && isSimulated(files.models, variables) ? simulatorVariables() : {};
}
