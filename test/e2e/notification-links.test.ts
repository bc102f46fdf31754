import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { standardBody } from '../../services/supervisor/src/domain/notify/notification.ts';

const APP = new URL('../../clients/console/src/app.tsx', import.meta.url);
const CONSOLE = 'https://writ.example.com/';

/** The paths of the console's pages, without the wildcard route. */
const paths = [...readFileSync(APP, 'utf8').matchAll(/<Route path="(?<path>[^"*]+)"/g)].map(
  ({ groups }) => groups?.path ?? '',
);

it.each([
  ['approval_requested', { run_id: 'run_1', approval_id: 'apr_1' }, '/approvals/:approvalId'],
  ['halted', { halt_id: 'hlt_1' }, '/halts'],
  ['budget_threshold', { run_id: 'run_1', level: 'tenant_day', percent: 80 }, '/runs/:runId'],
  ['test', {}, '/'],
] as const)('links %s notifications to a console page (PE-2)', (type, data, page) => {
  const notification = { type, timestamp: '', data: { tenant: 'acme', ...data } };
  const { link } = JSON.parse(standardBody(notification, CONSOLE)).data as { link: string };
  const path = link.slice(CONSOLE.length - 1) || '/';
  const matching = paths.filter((one) =>
    new RegExp(`^${one.replaceAll(/:\w+/g, '[^/]+')}$`).test(path),
  );
  expect(matching, path).toEqual([page]);
});
