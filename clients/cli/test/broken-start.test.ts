import { loadProject, openProject } from '@writ/platform';
import { describe, expect, it } from 'vitest';
import { BROKEN_PROJECTS } from './broken-projects.ts';
import { createProject, writ } from './project-folder.ts';

const MISTRAL = `
models:
  main: { base_url: https://api.mistral.ai/v1, api_key_env: MISTRAL_API_KEY, model: mistral-large-latest }
`;

describe('a start without writ dev', () => {
  it.each(BROKEN_PROJECTS)(
    'reports the same errors as writ doctor for $what (SYS-3)',
    async ({ breaks, named }) => {
      const { folder, ...project } = await createProject();
      breaks({ folder, ...project });
      const { out } = await writ(['doctor', folder, '--no-platform']);
      const problems = out
        .filter((line) => line.startsWith('error'))
        .map((line) => line.slice('error'.length).trim());
      const start = async () => {
        const opened = await openProject(
          { ...loadProject(folder), env: {} },
          { env: { WRIT_LOG_LEVEL: 'silent' }, freePorts: true },
        );
        await opened.close();
        return '';
      };
      const message = await start().catch((error: Error) =>
        error.message.replaceAll(`${folder}/`, ''),
      );
      // A warning, such as about a policy that blocks every answer, does not fail the start.
      if (problems.length === 0) expect(message).toBe('');
      else expect(message).toMatch(named);
      for (const problem of problems)
        expect(message).toContain(problem.replaceAll(`${folder}/`, ''));
    },
  );

  it('starts without a simulator script when no model uses the simulator (SYS-5)', async () => {
    const project = await createProject();
    project.write('models.yaml', MISTRAL);
    project.remove('simulator/default.yaml');
    const env = { WRIT_LOG_LEVEL: 'silent', MISTRAL_API_KEY: 'key' };
    const loaded = loadProject(project.folder);
    const opened = await openProject(loaded, { env, freePorts: true });
    expect(opened.model.simulated).toBe(false);
    await opened.close();
    const missing = openProject(loaded, { env: { WRIT_LOG_LEVEL: 'silent' }, freePorts: true });
    await expect(missing).rejects.toThrow(
      /model main needs a provider key in MISTRAL_API_KEY, which is not set/,
    );
  });
});
