import { SIMULATED_SUBJECT } from '../demo-people.ts';
import type { Human } from './human.ts';

/**
 * Returns a callback for questions. At the first question, it prints that the approver is simulated. It prints nothing
 * when a person answers.
 */
export function simulationNotice(human: Human, print: (line: string) => void): () => void {
  let isShown = human.isPerson;
  return () => {
    if (isShown) return;
    isShown = true;
    print(
      `    The person of the demo is simulated (${human.description}) and recorded as ${SIMULATED_SUBJECT}.`,
    );
  };
}
