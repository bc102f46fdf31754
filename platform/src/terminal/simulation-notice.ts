import { SIMULATED_SUBJECT } from '../demo-people.ts';
import type { Human } from './human.ts';

/** Prints at the first question that a program answers it; nothing if a person answers. */
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
