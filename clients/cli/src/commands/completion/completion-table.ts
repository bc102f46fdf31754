import type { Argument, Command, Option } from 'commander';

/** A completion candidate with a one-line description. */
export interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

/** The completion candidates of one command. */
export interface CompletionEntry {
  /** The full path of the command, such as `writ runs list`. */
  readonly path: string;
  /** Subcommands and options of the command, and the choices of its argument. */
  readonly words: readonly CompletionWord[];
  /** Options with a fixed set of values, such as `--output`. */
  readonly values: readonly { readonly option: string; readonly choices: readonly string[] }[];
}

/** Returns an entry for each command of the program, the program first. */
export function completionTable(program: Command): readonly CompletionEntry[] {
  return entriesOf(program, program.name());
}

function entriesOf(command: Command, path: string): CompletionEntry[] {
  const options = command.options.filter(({ hidden }) => !hidden);
  return [
    {
      path,
      words: [
        ...command.commands.map((each) => wordOf(each.name(), each.description())),
        ...command.registeredArguments.flatMap(choicesOf).map((word) => wordOf(word, '')),
        ...options.flatMap((option) =>
          flagsOf(option).map((flag) => wordOf(flag, option.description)),
        ),
        wordOf('--help', 'print help'),
      ],
      values: options.flatMap((option) =>
        flagsOf(option).flatMap((flag) => {
          const choices = choicesOf(option);
          return choices.length === 0 ? [] : [{ option: flag, choices }];
        }),
      ),
    },
    ...command.commands.flatMap((each) => entriesOf(each, `${path} ${each.name()}`)),
  ];
}

function wordOf(word: string, description: string): CompletionWord {
  return { word, description: description.split('\n')[0] ?? '' };
}

function choicesOf({ argChoices = [] }: Argument | Option): readonly string[] {
  return argChoices;
}

function flagsOf({ short, long }: Option): string[] {
  return [short, long].filter((flag): flag is string => flag !== undefined && flag !== null);
}
