import { askAtTerminal } from './ask-at-terminal.ts';
import { automaticApprover, type Human, readHuman } from './human.ts';

/**
 * The approver: the option `--human`, else the person at the terminal, else an automatic approver with a cap.
 *
 * @throws InvalidRequestError when the option is invalid, or needs a terminal and there is none
 */
export function chooseHuman(option: string | undefined): Human {
  if (option !== undefined) return readHuman(option, askAtTerminal);
  return process.stdin.isTTY && process.stderr.isTTY ? askAtTerminal() : automaticApprover();
}
