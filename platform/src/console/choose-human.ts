import { askAtTerminal } from './ask-at-terminal.ts';
import { type Human, readHuman, standIn } from './human.ts';

/**
 * Who answers approvals: what `--human` says, else the person at the terminal, else a stand-in that caps.
 *
 * @throws InvalidRequestError when the option is none, or asks for a terminal that is not there
 */
export function chooseHuman(option: string | undefined): Human {
  if (option !== undefined) return readHuman(option, askAtTerminal);
  return process.stdin.isTTY && process.stderr.isTTY ? askAtTerminal() : standIn();
}
