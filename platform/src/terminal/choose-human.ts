import { askAtTerminal } from './ask-at-terminal.ts';
import { type Human, readHuman, simulatedApprover } from './human.ts';

/**
 * The approver of the demo: the option `--human`, else the person at the terminal, else a simulated person with a cap.
 *
 * @throws InvalidRequestError when the option is invalid
 */
export function chooseHuman(option: string | undefined): Human {
  if (option !== undefined) return readHuman(option, askAtTerminal);
  return process.stdin.isTTY && process.stderr.isTTY ? askAtTerminal() : simulatedApprover();
}
