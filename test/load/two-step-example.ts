import { type Example, loadExample } from '@writ/platform';

/** The refund desk with a model that looks up an account and answers. */
export function twoStepExample(): Example {
  const example = loadExample('refund-desk');
  const script = example.scripts.find(({ name }) => name === example.script);
  if (script === undefined) throw new Error('The example has no default script.');
  const first = script.entries[0];
  if (first === undefined) throw new Error('The script has no entries.');
  const second = {
    when: { json_path: { 'state_summary.steps_completed': 1 } },
    reply: { json: { kind: 'final', answer: 'The account was read.' } },
  };
  const twoStep = { ...script, name: 'two-steps', entries: [first, second] };
  return { ...example, script: twoStep.name, scripts: [twoStep] };
}
